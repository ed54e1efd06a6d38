"""Test the list of files that a solution's build needs, and the requirements of a source distribution."""

import io
import tarfile

import pytest

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.image.locks.ingredients import AFTER, ingredients
from toolkit.image.locks.recipe import load, names
from toolkit.image.locks.resolve import required_by
from toolkit.image.locks.solve_recipe import solve_recipe_rows
from toolkit.knowledge.stacks import stacks

BUILDABLE = [name for name in names() if not load(name).recipe.unbuildable]


def taken(name):
    named = load(name)
    return ingredients(solve_recipe_rows(named)[1], named.recipe, stacks())


@every_row("name", BUILDABLE)
def test_what_is_compiled_stands_after_what_it_needs(name):
    done = []
    for component in taken(name).compiled:
        assert set(AFTER[component]) & set(taken(name).compiled) <= set(done)
        done.append(component)


@every_row("name", BUILDABLE)
def test_no_compiler_is_among_the_packages_that_stay(name):
    needs = taken(name)
    assert "g++" in needs.debian_build
    assert not {"g++", "make", "cmake", "python3-dev"} & set(needs.debian_run)


def test_horovod_and_mpi4py_come_from_their_source_distributions():
    needs = taken("tf2.15-cpu")
    assert needs.sdists == ("mpi4py", "horovod")
    assert needs.wheels == ("tensorflow-cpu==2.15.1",)
    assert "libopenmpi3" in needs.debian_run


def sdist(tmp_path, **members):
    file = tmp_path / "some_thing-1.0.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        for name, text in members.items():
            entry = tarfile.TarInfo(f"some_thing-1.0/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return file


def test_a_new_source_distribution_says_what_it_needs_in_its_metadata(tmp_path):
    text = "Metadata-Version: 2.4\nName: some-thing\nRequires-Dist: a>=1\nRequires-Dist: b; extra == 'x'\n"
    assert required_by(sdist(tmp_path, **{"PKG-INFO": text})) == ("a>=1", "b; extra == 'x'")


def test_an_old_one_says_it_in_sections(tmp_path):
    members = {
        "PKG-INFO": "Metadata-Version: 1.0\nName: some-thing\n",
        "some_thing.egg-info/requires.txt": "a\nb>=2\n\n[:python_version < '3.7']\nold\n\n[x]\nextra\n",
    }
    found = required_by(sdist(tmp_path, **members))
    assert found == ("a", "b>=2", "old ; python_version < '3.7'", "extra ; extra == 'x'")


def test_what_is_no_source_distribution_is_told(tmp_path):
    file = tmp_path / "junk.tar.gz"
    file.write_bytes(b"junk")
    with pytest.raises(CheckFailed, match=r"junk\.tar\.gz cannot be read as a Python source distribution"):
        required_by(file)
