"""What is explained: a file, a folder of output files, or a job that was launched from here."""

from pathlib import Path

import pytest

from toolkit.errors import BadInput
from toolkit.job.explanation import of_place


def test_all_output_files_of_a_folder_are_read(tmp_path: Path):
    (tmp_path / "slurm-1.out").write_text("epoch 1\n")
    (tmp_path / "slurm-1.err").write_text("KeyError: 'x'\n")
    (tmp_path / "model.bin").write_text("RuntimeError: not output\n")
    found = of_place(str(tmp_path))
    assert found.root is not None
    assert found.root.text == "KeyError: 'x'"


def test_a_folder_without_output_is_refused(tmp_path: Path):
    with pytest.raises(BadInput, match="no file of job output"):
        of_place(str(tmp_path))


def test_a_name_that_is_neither_file_nor_job_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(BadInput, match="absent"):
        of_place("absent")
