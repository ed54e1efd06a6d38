"""Where a lock is, whether it fits, and what moved."""

import msgspec
import pytest

from tests.unit.image.locks import file, lock
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.lock import fitting_lock, load_lock, lock_path, moved, save_lock, stale
from toolkit.image.recipe import load, recipe_sha256
from toolkit.model.lock import encoded

TEXT = """
schema = "toolkit.recipe/2"
title = "Mine"
[want]
openmpi = "*"
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    recipe = tmp_path / "mine.toml"
    recipe.write_text(TEXT)
    return str(recipe)


def fitting(where):
    return lock(recipe="mine", recipe_sha256=recipe_sha256(load(where).recipe))


def test_a_lock_is_beside_its_recipe_and_read_back(mine, tmp_path):
    assert load_lock(mine) is None
    save_lock(fitting(mine), lock_path(mine))
    assert (tmp_path / "mine.lock.json").is_file()
    assert fitting_lock(load(mine), mine) == fitting(mine)


def test_a_lock_of_ones_own_for_a_shipped_recipe_goes_first(mine, tmp_path):
    own = tmp_path / "config" / "toolkit" / "recipes" / "mpi-only.lock.json"
    assert lock_path("mpi-only") != own
    save_lock(lock(), own)
    assert lock_path("mpi-only") == own


def test_equal_locks_are_equal_bytes(mine):
    assert encoded(fitting(mine)) == encoded(fitting(mine))


def test_a_recipe_without_a_lock_is_told_with_the_command_that_makes_it(mine):
    with pytest.raises(Missing) as caught:
        fitting_lock(load(mine), mine)
    assert caught.value.fix == f"toolkit image lock {mine}"


def test_a_lock_that_no_longer_fits_is_refused_with_the_command_that_mends_it(mine, tmp_path):
    save_lock(fitting(mine), lock_path(mine))
    (tmp_path / "mine.toml").write_text(TEXT.replace('"*"', '"4.*"'))
    with pytest.raises(BadInput, match="the recipe has changed since it was locked") as caught:
        fitting_lock(load(mine), mine)
    assert caught.value.fix == f"toolkit image lock {mine} --upgrade"


def test_a_comment_does_not_make_a_lock_stale(mine, tmp_path):
    before = fitting(mine)
    (tmp_path / "mine.toml").write_text(f"# a word\n{TEXT}")
    assert stale(before, load(mine).recipe) == ""


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": "toolkit.lock/1"}'])
def test_what_is_no_lock_is_refused(mine, tmp_path, text):
    (tmp_path / "mine.lock.json").write_text(text)
    with pytest.raises(BadInput, match="this is no lock"):
        load_lock(mine)


def test_a_lock_of_another_kind_is_refused(mine):
    other = msgspec.structs.replace(fitting(mine), schema="toolkit.lock/9")
    assert "toolkit.lock/9" in stale(other, load(mine).recipe)


def test_a_folder_that_takes_no_file_is_told(mine, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckFailed, match="cannot be written"):
        save_lock(fitting(mine), tmp_path / "file" / "x.lock.json")


def test_what_moved_is_what_differs():
    old = lock()
    newer = file("python3.11", "3.11.2-7", "_amd64.deb")
    run = msgspec.structs.replace(old.run, debian=(newer, file("extra", "1", ".deb")))
    changes = moved(old, msgspec.structs.replace(old, run=run))
    assert [(m.where, m.name, m.old, m.new) for m in changes] == [
        ("run debian", "extra", "", "1"),
        ("run debian", "libpmix2", "4.2.2-1", ""),
        ("run debian", "python3.11", "3.11.2-6+deb12u6", "3.11.2-7"),
    ]
    assert moved(old, old) == ()
