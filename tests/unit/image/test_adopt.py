import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine import examples
from tests.unit.image.sifs import sandbox
from tests.unit.tables import every_row
from toolkit.cli.image.adopt import description_lines, short_name
from toolkit.errors import BadInput
from toolkit.image.builds.adopt import adopt_image, recipe_like
from toolkit.image.builds.layering import context, require_python
from toolkit.image.inspect import open_image
from toolkit.image.locks.recipe import parse
from toolkit.model.facts import ImageFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.report.toml import toml

STATUS = """\
Package: openmpi-bin
Status: install ok installed
Version: 4.1.4-3

Package: gone
Status: deinstall ok config-files
Version: 1
"""
SITE = "/usr/lib/python3/dist-packages"
FILES = {
    "/etc/os-release": 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
    "/var/lib/dpkg/status": STATUS,
    f"{SITE}/numpy-1.26.4.dist-info/METADATA": "",
    f"{SITE}/no_version.dist-info/METADATA": "",
}
FACTS = ImageFacts(
    path="x",
    format="sif",
    digest="sha256:1",
    architecture="x86_64",
    tensorflow="2.15.1",
    horovod="0.28.1",
    horovod_built=("gloo", "mpi", "cuda"),
    ucx="1.13.1-1",
    python="3.11.2",
    mpi=ImageMpi(implementation="mpich", version="4.0.2", library="/l", interfaces=("pmi2",)),
    unknown={"mpi4py": "unreadable", "locked": "no matter"},
)


@pytest.fixture
def found(tmp_path):
    with open_image(sandbox(tmp_path / "image", FILES)) as (tree, facts):
        return adopt_image(tree, facts, "docker://h/x:1", None)


def test_what_its_lists_name_is_listed_with_where_it_stands(found):
    assert [(p.kind, p.name, p.version) for p in found.packages] == [
        ("debian", "openmpi-bin", "4.1.4-3"),
        ("python", "numpy", "1.26.4"),
    ]
    assert found.packages[1].where == f"{SITE}/numpy-1.26.4.dist-info"


def test_what_it_lacks_is_named_with_what_mends_it(found):
    assert {lack.id for lack in found.lacks} == {"no-mpi", "no-python", "no-mpi4py", "no-trainers"}
    assert all(lack.fix and lack.title for lack in found.lacks)
    assert found.chosen is None


def test_trainers_that_are_there_are_not_missed(tmp_path):
    files = {**FILES, "/opt/toolkit/lib/toolkit/trainers/mnist.py": ""}
    with open_image(sandbox(tmp_path / "image", files)) as (tree, facts):
        assert "no-trainers" not in {lack.id for lack in adopt_image(tree, facts, "x", None).lacks}


@every_row(
    ("python", "old"), [("3.8.10", True), ("3.9", True), ("3.11", False), ("3.11.2", False), (None, False)]
)
def test_a_python_that_is_too_old_for_the_trainers_is_told_and_refused(tmp_path, python, old):
    facts = msgspec.structs.replace(FACTS, python=python, evidence={"python": "/usr/bin/python3 says so"})
    with open_image(sandbox(tmp_path / "image", FILES)) as (tree, _):
        lacks = {lack.id: lack for lack in adopt_image(tree, facts, "x", None).lacks}
    assert ("old-python" in lacks) == old
    if not old:
        require_python(facts, "x")
        return
    assert "3.11 or later" in lacks["old-python"].fix
    why = f"x: its Python is {python} \\(/usr/bin/python3 says so\\), but the trainers need 3.11 or later"
    with pytest.raises(BadInput, match=why) as refused:
        require_python(facts, "x")
    assert "toolkit image list" in refused.value.fix


def test_a_cluster_adds_what_stands_in_the_way_there(tmp_path):
    with open_image(sandbox(tmp_path / "image", FILES)) as (tree, _):
        there = adopt_image(tree, FACTS, "x", examples.HOST)
    without = {lack.id for lack in there.lacks if lack.id.startswith("no-")}
    assert there.place == examples.HOST.place
    assert len(there.lacks) > len(without)
    assert all(lack.severity != "info" or lack.id in without for lack in there.lacks)
    assert any(examples.HOST.place in line for line in description_lines(there))


def test_components_are_named_as_recipes_name_them():
    assert FACTS.component_versions() == {
        "tensorflow": "2.15.1",
        "horovod": "0.28.1",
        "mpich": "4.0.2",
        "ucx": "1.13.1-1",
        "python": "3.11.2",
    }


def test_the_description_reads_as_a_recipe_that_nobody_builds(tmp_path):
    with open_image(sandbox(tmp_path / "image", FILES)) as (tree, _):
        described = adopt_image(tree, FACTS, 'docker://h/x:1 "quoted"', None)
    recipe = parse(toml(recipe_like(described, "what it is")), "x.toml")
    assert recipe.want["ucx"] == "1.13.1"
    assert recipe.want["mpich"] == "4.0.2"
    assert recipe.want["python"] == "3.11"
    assert recipe.operations == ("mpi", "gloo")
    assert "toolkit did not build" in recipe.unbuildable
    assert described.unknown == {"mpi4py": "unreadable"}


@every_row(
    ("image", "name"),
    [
        ("docker://h.example:5000/ml/TF:2.15", "tf-2-15"),
        ("docker-daemon:my/image:latest", "image-latest"),
        ("/data/some image.SIF", "some-image-sif"),
        ("a.sif", "a"),
        ("docker://h/a@sha256:" + "0" * 64, "a"),
        ("///", "image"),
    ],
)
def test_names_of_files_and_tags(image, name):
    assert short_name(image) == name


@given(st.text(max_size=50))
def test_no_name_surprises(image):
    name = short_name(image)
    assert name
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_the_layer_is_put_on_exactly_that_image_and_ends_with_its_user():
    files = context("a\nRUN evil", "sha256:1", "ada")
    lines = files["Dockerfile"].decode().splitlines()
    assert "FROM sha256:1" in lines
    assert lines[-1] == "USER ada"
    assert "RUN evil" not in lines
    assert "lib/toolkit/trainers/mnist.py" in files
