"""Test checkpoint files: trainers write complete files, keep the last few, and never load a damaged file."""

import errno
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from tests.unit.tables import every_row
from toolkit.trainers.training import checkpoint
from toolkit.trainers.training.checkpoint import (
    MANIFEST,
    STATE,
    CheckpointDamage,
    EpochPart,
    TrainingProgress,
)
from toolkit.trainers.trouble import Trouble

ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.int64(7) * np.ones((), np.int64), np.zeros((0, 3))]
RECORDS = [{"record": "header", "seed": 1}]


def progress(epochs=0, images=64):
    part = EpochPart(images=images, loss=0.1 + 0.2, right=3, seconds=1.5)
    return TrainingProgress(
        epochs, part, passes=2, settings={"seed": 1, "learning_rate": 0.1}, records=RECORDS
    )


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def write(folder, *places, keep=3):
    for epochs, images in places:
        checkpoint.write(folder, progress(epochs, images), ARRAYS, keep)


def test_what_was_written_is_read_to_the_last_bit(tmp_path):
    path = checkpoint.write(tmp_path / "new", progress(), ARRAYS, 3)
    found, arrays = checkpoint.read(path)
    assert found == progress()
    assert [(a.dtype, a.shape, a.tobytes()) for a in arrays] == [
        (a.dtype, a.shape, a.tobytes()) for a in ARRAYS
    ]


def test_the_newest_of_a_few_is_loaded_and_the_oldest_are_removed(tmp_path):
    write(tmp_path, (0, 64), (1, 0), (1, 999), (10, 0), keep=2)
    assert checkpoint.names(tmp_path) == ["000010-000000000000", "000001-000000000999"]
    assert checkpoint.newest(tmp_path)[0].epochs == 10
    assert listed(tmp_path) == sorted(checkpoint.names(tmp_path))


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert checkpoint.newest(tmp_path / "none") is None


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def gone(path):
    path.unlink()


@every_row("name", [STATE, MANIFEST])
@every_row("spoil", [cut, flip, empty, gone])
def test_a_damaged_one_is_told_and_the_one_before_is_loaded(tmp_path, capsys, name, spoil):
    write(tmp_path, (1, 0), (2, 0))
    spoil(tmp_path / "000002-000000000000" / name)
    assert checkpoint.newest(tmp_path)[0].epochs == 1
    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path}/000002-000000000000: not loaded: {name} ")
    assert said.count("\n") == 1


def test_a_number_changed_in_the_manifest_is_noticed(tmp_path):
    path = checkpoint.write(tmp_path, progress(), ARRAYS, 3)
    text = (path / MANIFEST).read_text()
    changed = text.replace('"images": 64', '"images": 65')
    assert changed != text
    (path / MANIFEST).write_text(changed)
    with pytest.raises(CheckpointDamage, match="differs from what was written"):
        checkpoint.read(path)


def test_a_later_form_is_not_guessed_at(tmp_path):
    path = checkpoint.write(tmp_path, progress(), ARRAYS, 3)
    values = json.loads((path / MANIFEST).read_text())
    del values["manifest_sha256"]
    values["schema"] = "toolkit.checkpoint/9"
    (path / MANIFEST).write_text(json.dumps({**values, "manifest_sha256": checkpoint._digest(values)}))
    with pytest.raises(
        Trouble, match=r"has the format toolkit\.checkpoint/9, .* or start again with --fresh"
    ):
        checkpoint.newest(tmp_path)
    assert path.is_dir()


@every_row(
    ("places", "said"),
    [([(1, 0)], "the only checkpoint is damaged"), ([(1, 0), (2, 0)], "all 2 checkpoints are damaged")],
)
def test_where_all_are_damaged_nobody_begins_anew_unasked(tmp_path, capsys, places, said):
    write(tmp_path, *places)
    for name in checkpoint.names(tmp_path):
        empty(tmp_path / name / STATE)
    with pytest.raises(
        Trouble, match=f"{said}; restore an undamaged checkpoint, or start again with --fresh"
    ) as told:
        checkpoint.newest(tmp_path)
    assert told.value.code == 1
    assert capsys.readouterr().out.count("not loaded") == len(places)


@every_row("name", [STATE, MANIFEST])
def test_one_that_cannot_be_read_now_is_not_taken_for_damaged(tmp_path, name, monkeypatch):
    write(tmp_path, (1, 0), (2, 0))
    real = Path.open

    def stale(path, *more, **named):
        if path.name == name:
            raise OSError(errno.ESTALE, "Stale file handle", str(path))
        return real(path, *more, **named)

    monkeypatch.setattr(Path, "open", stale)
    with pytest.raises(Trouble, match=f"000002-0+/{name}: cannot be read: Stale file handle; ") as told:
        checkpoint.newest(tmp_path)
    assert told.value.code == 1
    assert len(checkpoint.names(tmp_path)) == 2


def test_a_full_disk_is_one_sentence_and_keeps_what_was_there(tmp_path, monkeypatch):
    write(tmp_path, (1, 0))

    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(Trouble) as told:
        write(tmp_path, (2, 0))
    assert told.value.code == 1
    assert "000002-000000000000: the checkpoint cannot be written: No space left on device" in str(told.value)
    assert "the previous checkpoint 000001-000000000000 is kept" in str(told.value)
    assert listed(tmp_path) == ["000001-000000000000"]
    assert checkpoint.newest(tmp_path)[0].epochs == 1


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_that_is_loaded(tmp_path):
    write(tmp_path, (1, 0))
    child = os.fork()
    if not child:
        checkpoint._to_disk = lambda folder: os._exit(9)
        checkpoint.write(tmp_path, progress(2, 0), ARRAYS, 3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert len(listed(tmp_path)) == 2
    assert checkpoint.newest(tmp_path)[0].epochs == 1
    write(tmp_path, (2, 0))
    assert listed(tmp_path) == ["000001-000000000000", "000002-000000000000"]


def test_one_that_was_damaged_is_written_again_and_later_ones_go(tmp_path, capsys):
    write(tmp_path, (1, 0), (2, 0), (3, 0))
    for name in ("000003-000000000000", "000002-000000000000"):
        empty(tmp_path / name / MANIFEST)
    write(tmp_path, (2, 0))
    assert checkpoint.names(tmp_path) == ["000002-000000000000", "000001-000000000000"]
    assert checkpoint.newest(tmp_path)[0].epochs == 2
    assert capsys.readouterr().out == ""


def test_a_new_training_removes_those_of_the_old_one_and_no_other_file(tmp_path):
    write(tmp_path, (1, 0), (2, 0))
    (tmp_path / "notes").write_text("mine")
    checkpoint.remove_all(tmp_path)
    assert listed(tmp_path) == ["notes"]


def test_a_file_system_that_cannot_sync_folders_is_good_enough(tmp_path, monkeypatch):
    real = os.fsync

    def picky(number):
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(number)

    monkeypatch.setattr(checkpoint.os, "fsync", picky)
    write(tmp_path, (1, 0))
    assert checkpoint.newest(tmp_path)[0].epochs == 1
