"""The Dockerfile of a recipe and what goes with it."""

import re

import pytest

from toolkit.image import emit
from toolkit.image.emit import Surroundings
from toolkit.image.recipe import Named, load, names, parse

PLAIN = Surroundings("base:1", "base:1 (test)")


def instructions(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


def final_stage(text: str) -> str:
    return text[text.rindex("\nFROM ") :]


@pytest.mark.parametrize("name", names())
def test_both_builders_take_it(name):
    text = emit.dockerfile(load(name), PLAIN)
    assert "<<" not in text
    assert "--mount" not in text
    assert "--chmod" not in text
    assert "--link" not in text
    known = {"FROM", "LABEL", "ARG", "RUN", "COPY", "ENV"}
    assert {line.split()[0] for line in instructions(text) if not line.startswith(" ")} <= known


@pytest.mark.parametrize("name", names())
def test_no_compiler_comes_into_the_final_stage(name):
    last = final_stage(emit.dockerfile(load(name), PLAIN))
    assert not re.search(r"g\+\+|gcc|cmake|make\b|-dev\b", last)


def test_only_what_the_recipe_asks_for_is_installed():
    text = emit.dockerfile(load("mpi-only"), PLAIN)
    assert "mpi4py==4.1.1" in text
    assert "tensorflow-cpu" not in text
    assert "horovod" not in text


@pytest.mark.parametrize(("operations", "words"), [('"mpi"', "MPI"), ('"gloo"', "GLOO")])
def test_horovod_is_told_what_to_do_without(operations, words):
    text = (emit.shipped("recipes") / "tf2.15-cpu.toml").read_text().replace('"mpi", "gloo"', operations)
    made = emit.dockerfile(Named("r", parse(text, "r.toml")), PLAIN)
    assert f"HOROVOD_WITH_{words}=1" in made
    other = {"MPI": "GLOO", "GLOO": "MPI"}[words]
    assert f"HOROVOD_WITHOUT_{other}=1" in made


def test_certificates_and_settings_stay_in_the_build_stage():
    around = Surroundings("base:1", "base:1", b"PEM", ("PIP_INDEX_URL",))
    text = emit.dockerfile(load("mpi-only"), around)
    assert "COPY certificates.pem" in text
    assert "ARG PIP_INDEX_URL" in text
    assert not re.search("certificates|PIP_|SSL", final_stage(text))
    assert emit.context(load("mpi-only"), around)["certificates.pem"] == b"PEM"


def test_without_certificates_there_is_no_trace_of_any():
    assert "certificates" not in emit.dockerfile(load("mpi-only"), PLAIN)
    assert "certificates.pem" not in emit.context(load("mpi-only"), PLAIN)


def test_a_title_cannot_break_out_of_its_comment():
    recipe = load("mpi-only").recipe
    import msgspec

    evil = msgspec.structs.replace(recipe, title="nice\nRUN touch /broken")
    assert "\nRUN touch" not in emit.dockerfile(Named("r", evil), PLAIN)


def test_the_base_is_quoted_where_a_shell_reads_it():
    around = Surroundings("base:1", "base:1 (it's mine)")
    assert """--base 'base:1 (it'"'"'s mine)'""" in emit.dockerfile(load("mpi-only"), around)


def test_the_trainers_go_in_and_caches_do_not():
    files = emit.context(load("mpi-only"), PLAIN)
    assert "lib/toolkit/__init__.py" in files
    assert "lib/toolkit/trainers/__init__.py" in files
    assert not [name for name in files if "__pycache__" in name]


def test_the_trainers_are_the_last_thing_that_goes_in():
    copies = [
        line for line in instructions(emit.dockerfile(load("mpi-only"), PLAIN)) if line.startswith("COPY")
    ]
    assert copies[-1].startswith("COPY lib/")


def test_the_source_hash_is_the_same_on_every_machine_and_differs_for_recipes():
    assert emit.source_hash(load("mpi-only")) == emit.source_hash(load("mpi-only"))
    assert emit.source_hash(load("mpi-only")) != emit.source_hash(load("tf2.15-cpu"))


def test_a_hash_of_files_tells_names_from_contents():
    assert emit.digest_of({"a": b"bc"}) != emit.digest_of({"ab": b"c"})


def test_the_labels_name_versions_base_and_source():
    labels = emit.labels(load("tf2.15-cpu"), PLAIN)
    assert labels["toolkit.mpi"] == "openmpi 4.1.4"
    assert labels["toolkit.horovod"] == "0.28.1"
    assert labels["toolkit.base"] == "base:1 (test)"
    assert labels["org.opencontainers.image.title"] == "tf2.15-cpu"
    assert "toolkit.tensorflow" not in emit.labels(load("mpi-only"), PLAIN)
