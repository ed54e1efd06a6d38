"""Test the files from which toolkit builds an image, such as the Dockerfile."""

import re
from pathlib import Path

import msgspec
import pytest
from spython.main.parse.parsers import SingularityParser

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.image.builds.context import compile_context, image_context, stack_context, whole_context
from toolkit.image.builds.emit import Making, definition, dockerfile, environment
from toolkit.image.builds.identity import digest_of, labels, source_hash, stack_hash
from toolkit.image.locks.lock import load_lock
from toolkit.image.locks.recipe import names
from toolkit.image.locks.steps import key_of, output_of

LOCKED = [name for name in names() if load_lock(name)]


def making(name, **changes):
    return Making(lock=load_lock(name), **changes)


def files_of(made):
    return {f.sha256: Path(f.file) for f in every_file(made.lock)}


def every_file(lock):
    stages = (lock.build, lock.run)
    return [*lock.base.packages, *(f for s in stages for f in (*s.debian, *s.wheels, *s.sources))]


def instructions(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


def final_stage(text: str) -> str:
    return text[text.rindex("\nFROM ") :]


def test_the_shipped_recipes_are_locked():
    assert {"mpi-only", "tf2.15-cpu"} <= set(LOCKED)


@every_row("name", LOCKED)
def test_both_builders_take_it(name):
    text = dockerfile(making(name))
    for word in ("<<", "--mount", "--chmod", "--link", "--network"):
        assert word not in text
    known = {"FROM", "LABEL", "ARG", "RUN", "COPY", "ADD", "ENV", "CMD"}
    assert {line.split()[0] for line in instructions(text)} <= known


@every_row("name", LOCKED)
def test_nothing_but_the_finished_tree_comes_into_the_final_stage(name):
    last = instructions(final_stage(dockerfile(making(name))))
    assert last[0] == "FROM scratch"
    assert [line for line in last if line.startswith("COPY --from")] == ["COPY --from=stack / /"]


@every_row("name", LOCKED)
def test_every_file_that_the_text_copies_is_in_the_folder(name):
    made = making(name)
    context = {"base.tar", *whole_context(made, files_of(made))}
    for line in instructions(dockerfile(made)):
        if line.startswith(("COPY ", "ADD ")) and "--from" not in line:
            for source in line.split()[1:-1]:
                assert source in context or any(n.startswith(source) for n in context), line


@every_row("name", LOCKED)
def test_no_step_fetches_anything(name):
    made = making(name)
    scripts = [c for n, c in whole_context(made, files_of(made)).items() if n.endswith(".sh")]
    text = dockerfile(made) + b"\n".join(s for s in scripts if isinstance(s, bytes)).decode()
    assert not re.search(r"apt-get update|curl |wget |pip download", text)
    assert all("--no-index" in line for line in re.findall(r".*pip\S* (?:install|wheel) .*", text))


def test_only_what_the_recipe_asks_for_is_compiled():
    assert [step.component for step in making("mpi-only").steps] == ["mpi4py"]
    assert [step.component for step in making("tf2.15-cpu").steps] == ["mpi4py", "horovod"]


def test_horovod_is_told_its_operations_and_sees_tensorflow():
    step = making("tf2.15-cpu").steps[1]
    assert step.words == ("/build/parts/compile.sh", "horovod", "horovod-0.28.1.tar.gz", "mpi", "gloo")
    assert "tensorflow-cpu" in {file.name for file in step.wheels}
    assert {"pip", "cffi", "tensorflow-cpu"} <= {file.name for file in step.requirements}


def test_every_requirement_is_named_once():
    names = [file.name for file in making("tf2.15-cpu").steps[1].requirements]
    assert len(names) == len(set(names))


def test_the_wheel_that_only_compiles_tensorflow_is_not_in_it():
    assert "libclang" not in {file.name for file in load_lock("tf2.15-cpu").run.wheels}


def test_what_is_ready_is_not_compiled_again():
    made = making("tf2.15-cpu", compiled_files={"mpi4py": "mpi4py-1.whl", "horovod": "horovod-1.whl"})
    text = dockerfile(made, ("base", "stack"))
    assert "compile.sh" not in text
    assert "COPY compiled/ /build/compiled/" in text
    assert "toolchain" not in stack_context(made, files_of(made), {})


def test_a_title_cannot_break_out_of_its_comment():
    evil = msgspec.structs.replace(load_lock("mpi-only"), title="nice\nRUN touch /broken")
    with pytest.raises(BadInput, match="a control character or a line break"):
        dockerfile(Making(lock=evil))
    with pytest.raises(BadInput, match="a control character or a line break"):
        definition(Making(lock=evil), {}, context="", jobs=1)


def test_the_trainers_are_the_last_thing_that_goes_in_and_their_caches_do_not():
    made = making("mpi-only")
    copies = [line for line in instructions(dockerfile(made)) if line.startswith("COPY")]
    assert copies[-1].startswith("COPY lib/")
    context = image_context(made, "toolkit-stack:x")
    assert "lib/toolkit/trainers/__init__.py" in context
    assert not [name for name in context if "__pycache__" in name]
    assert set(context["Dockerfile"].decode().split()) >= {"FROM", "toolkit-stack:x"}


def test_the_lock_and_the_bill_of_materials_go_in():
    context = image_context(making("mpi-only"), "toolkit-stack:x")
    assert {"papers/lock.json", "papers/sbom.cdx.json"} <= set(context)


def test_the_definition_is_read_back_by_an_independent_reader(tmp_path):
    made = making("tf2.15-cpu")
    file = tmp_path / "Singularity.def"
    file.write_text(definition(made, labels(made), context="/ctx/", jobs=3))
    (stages, text) = (SingularityParser(str(file)).parse(), file.read_text())
    assert set(stages) == {"compile", "image"}
    assert text.count("From: /ctx/base.tar") == 2
    assert "export JOBS=3" in text
    assert "/ctx/wheels /build/wheels" in text


@every_row("name", LOCKED)
def test_the_definition_runs_the_same_parts_as_the_dockerfile(name):
    made = making(name)
    words = re.compile(r"sh /build/parts/(?:compile|stack)\.sh.*")
    assert words.findall(definition(made, {}, context="", jobs=2)) == words.findall(dockerfile(made))


def test_the_environment_has_the_rows_variables_and_the_mpi_of_its_own():
    assert environment(load_lock("tf2.15-cpu"))["PATH"].startswith("/opt/toolkit/venv/bin:/usr/local/sbin")
    for name in LOCKED:
        keras = load_lock(name).solution.versions.get("keras", "")
        expected = "1" if name in {"tf2.18-cpu", "tf2.21-cpu", "tf2.21-cuda12"} else None
        if keras or name == "tf2.15-cpu":
            assert environment(load_lock(name)).get("TF_USE_LEGACY_KERAS") == expected


def test_the_source_hash_differs_for_recipes_and_not_for_machines():
    there = making("mpi-only", base="elsewhere:1", compiled_files={"mpi4py": "x.whl"})
    assert source_hash(making("mpi-only")) == source_hash(there)
    assert source_hash(making("mpi-only")) != source_hash(making("tf2.15-cpu"))


def test_another_compiled_wheel_is_another_stack():
    made = making("mpi-only")
    assert stack_hash(made, {"mpi4py": "a"}) != stack_hash(made, {"mpi4py": "b"})


def test_a_compiled_wheel_depends_on_what_it_is_made_from_and_on_nothing_else():
    made = making("tf2.15-cpu")
    mpi4py, horovod = made.steps
    same = msgspec.structs.replace(made.lock, epoch=1)
    assert key_of(mpi4py, made.lock, {}) == key_of(mpi4py, same, {})
    fewer = msgspec.structs.replace(made.lock.build, debian=made.lock.build.debian[1:])
    other = msgspec.structs.replace(made.lock, build=fewer)
    assert key_of(mpi4py, made.lock, {}) != key_of(mpi4py, other, {})
    assert key_of(mpi4py, made.lock, {}) != key_of(horovod, made.lock, {})
    assert output_of(horovod) == "horovod-*.whl"


def test_a_context_to_compile_in_has_what_it_needs_and_no_more():
    made = making("tf2.15-cpu")
    context = compile_context(made, made.steps[0], files_of(made), {})
    assert "sources/mpi4py-4.1.1.tar.gz" in context
    assert not [name for name in context if name.startswith(("wheels/", "packages/", "lib/"))]


def test_a_hash_of_files_tells_names_from_contents():
    assert digest_of({"a": b"bc"}) != digest_of({"ab": b"c"})


def test_the_labels_name_versions_base_source_and_lock():
    found = labels(making("tf2.15-cpu"))
    assert found["toolkit.mpi"] == "openmpi 4.1.4"
    assert found["toolkit.horovod"] == "0.28.1"
    assert found["org.opencontainers.image.title"] == "tf2.15-cpu"
    assert found["org.opencontainers.image.licenses"] == (
        "Apache-2.0 AND BSD-3-Clause AND BSD-3-Clause-Open-MPI AND Python-2.0"
    )
    assert len(found["toolkit.lock"]) == 64
    assert "toolkit.tensorflow" not in labels(making("mpi-only"))
