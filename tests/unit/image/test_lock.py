"""Test where toolkit stores a lock, whether it fits its recipe, and which versions a new lock changes."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.disks import fill
from tests.unit.image.locks import file, lock
from tests.unit.tables import every_row
from toolkit.cli.image import command
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.locks.lock import (
    EarlierLock,
    compare_locks,
    decode_lock,
    fitting_lock,
    load_lock,
    lock_path,
    save_lock,
    stale,
)
from toolkit.image.locks.recipe import load, recipe_sha256
from toolkit.model.lock import LockedStep, encode_lock

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
    assert encode_lock(fitting(mine)) == encode_lock(fitting(mine))


def test_a_recipe_without_a_lock_is_told_with_the_command_that_makes_it(mine):
    with pytest.raises(Missing) as caught:
        fitting_lock(load(mine), mine)
    assert caught.value.fix == f"lock the recipe: `toolkit image lock {mine}`"


def test_a_lock_that_no_longer_fits_is_refused_with_the_command_that_mends_it(mine, tmp_path):
    save_lock(fitting(mine), lock_path(mine))
    (tmp_path / "mine.toml").write_text(TEXT.replace('"*"', '"4.*"'))
    with pytest.raises(BadInput, match="the recipe has changed since it was locked") as caught:
        fitting_lock(load(mine), mine)
    assert caught.value.fix == f"lock the recipe again: `toolkit image lock {mine} --upgrade`"


def test_a_comment_does_not_make_a_lock_stale(mine, tmp_path):
    before = fitting(mine)
    (tmp_path / "mine.toml").write_text(f"# a word\n{TEXT}")
    assert stale(before, load(mine).recipe) == ""


@every_row("text", ["", "{}", "[1]", '{"schema": "toolkit.lock/2"}'])
def test_what_is_no_lock_is_refused(mine, tmp_path, text):
    (tmp_path / "mine.lock.json").write_text(text)
    with pytest.raises(BadInput, match="not a lock"):
        load_lock(mine)


def test_a_lock_of_another_schema_is_refused():
    other = msgspec.structs.replace(lock(), schema="toolkit.lock/9")
    with pytest.raises(BadInput, match=r"x: schema: expected toolkit\.lock/2, found 'toolkit\.lock/9'"):
        decode_lock(encode_lock(other), "x")


def earlier(where):
    """Return the lock of a recipe in the format of release 0.3.0."""
    values = json.loads(encode_lock(fitting(where)))
    for name in ("title", "packages", "steps", "environment", "licences"):
        del values[name]
    return json.dumps({**values, "schema": "toolkit.lock/1"})


@every_row("words", [("render",), ("build",), ("bundle", "-o", "b.tar")], ids=lambda w: w[0])
def test_a_lock_of_an_earlier_release_is_refused_with_the_command_that_renews_it(
    mine, tmp_path, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.lock.json").write_text(earlier(mine))
    done = CliRunner().invoke(command, [words[0], mine, *words[1:]], obj={"verbose": False, "quiet": True})
    assert isinstance(done.exception, EarlierLock)
    assert done.exception.code == 2
    assert done.exception.message == (
        f"{tmp_path}/mine.lock.json: schema toolkit.lock/1 is out of date: "
        "it lacks the build steps that toolkit.lock/2 contains"
    )
    assert done.exception.fix == f"lock the recipe again: `toolkit image lock {mine}`"


def test_a_lock_of_an_earlier_release_is_renewed(mine, locked, tmp_path):
    (tmp_path / "mine.lock.json").write_text(earlier(mine))
    assert "toolkit.lock/1 is out of date" in locked.run(mine).stderr
    assert load_lock(mine) == fitting(mine)


def test_a_folder_that_takes_no_file_is_told(mine, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckFailed, match="cannot be written"):
        save_lock(fitting(mine), tmp_path / "file" / "x.lock.json")


def test_a_full_disk_leaves_the_lock_that_was_there(mine, tmp_path, monkeypatch):
    save_lock(fitting(mine), lock_path(mine))
    before = sorted(tmp_path.iterdir())
    fill(monkeypatch)
    with pytest.raises(CheckFailed, match=r"mine\.lock\.json cannot be written: No space left"):
        save_lock(msgspec.structs.replace(fitting(mine), recipe="other"), lock_path(mine))
    assert load_lock(mine) == fitting(mine)
    assert sorted(tmp_path.iterdir()) == before


def test_what_moved_is_what_differs():
    old = lock()
    newer = file("python3.11", "3.11.2-7", "_amd64.deb")
    run = msgspec.structs.replace(old.run, debian=(newer, file("extra", "1", ".deb")))
    changes = compare_locks(old, msgspec.structs.replace(old, run=run))
    assert [(m.where, m.name, m.old, m.new) for m in changes] == [
        ("run debian", "extra", "", "1"),
        ("run debian", "libpmix2", "4.2.2-1", ""),
        ("run debian", "python3.11", "3.11.2-6+deb12u6", "3.11.2-7"),
    ]
    assert compare_locks(old, old) == ()


def test_steps_and_variables_that_differ_are_named():
    old = lock(steps=(LockedStep(component="horovod", words=("mpi", "gloo")),))
    new = lock(steps=(LockedStep(component="horovod", words=("mpi",)),), environment={"A": "1"})
    assert [(m.where, m.name, m.old, m.new) for m in compare_locks(old, new)] == [
        ("steps", "horovod", "mpi gloo", "mpi"),
        ("environment", "A", "", "1"),
    ]


class Locked:
    """Runs ``toolkit image lock`` with a fake resolver; ``asked`` counts the resolver's calls."""

    def __init__(self, monkeypatch):
        self.asked = 0
        monkeypatch.setattr("toolkit.cli.image.lock.connect", lambda: None)
        monkeypatch.setattr("toolkit.cli.image.lock.lock_of", self.lock_of)

    def lock_of(self, _client, named, *_given, **_options):
        self.asked += 1
        return lock(recipe=named.name, recipe_sha256=recipe_sha256(named.recipe))

    def run(self, *words):
        return CliRunner().invoke(command, ["lock", *words], obj={"verbose": False, "quiet": True})


@pytest.fixture
def locked(monkeypatch):
    return Locked(monkeypatch)


@every_row("text", [b"<<<<<<< HEAD\n{}", b'{"schema": "toolkit.lock/9"}', b"\xff", b"[" * 9999])
def test_a_lock_that_cannot_be_read_is_mended_by_the_command_that_its_error_names(
    mine, locked, tmp_path, text
):
    (tmp_path / "mine.lock.json").write_bytes(text)
    with pytest.raises(BadInput, match="not a lock") as caught:
        load_lock(mine)
    assert caught.value.fix == f"lock the recipe again: `toolkit image lock {mine}`"
    done = locked.run(mine)
    assert done.exit_code == 0, done.output
    assert "mine.lock.json: not a lock" in done.stderr
    assert "writing a new lock" in done.stderr
    assert load_lock(mine) == fitting(mine)


def test_a_lock_that_fits_is_kept_and_with_own_is_kept_in_ones_own_folder(mine, locked, tmp_path):
    own = tmp_path / "config" / "toolkit" / "recipes" / "mpi-only.lock.json"
    assert "already matches its recipe" in locked.run("mpi-only").stdout
    done = locked.run("mpi-only", "--own")
    assert f"{own}  written" in done.stdout
    assert stale(load_lock("mpi-only"), load("mpi-only").recipe) == ""
    assert lock_path("mpi-only") == own
    assert own.is_file()
    assert f"{own}  already matches its recipe" in locked.run("mpi-only", "--own").stdout
    assert locked.asked == 0


def test_a_recipe_that_was_given_by_its_path_has_no_lock_elsewhere(mine, locked, tmp_path):
    done = locked.run(mine, "--own")
    assert isinstance(done.exception, BadInput)
    assert "--own" in done.exception.message
    assert locked.asked == 0
    assert not (tmp_path / "config").exists()
