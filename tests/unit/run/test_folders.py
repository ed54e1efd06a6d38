"""Whether a folder takes files is tried, not guessed."""

from pathlib import Path

import pytest

from toolkit.errors import BadInput
from toolkit.run.folders import folder_mode, writable


def test_a_folder_is_made_and_left_empty(tmp_path):
    folder = tmp_path / "new" / "folder"
    assert writable(folder, "-o") == folder
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("below", ["", "folder", "several/folders"])
def test_a_place_that_takes_no_files_is_named_with_its_option(below):
    folder = Path("/proc") / below
    with pytest.raises(BadInput, match=f"^-o: {folder} cannot be written to: ") as caught:
        writable(folder, "-o")
    assert "-o" in caught.value.fix


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BadInput, match=f"{folder} cannot be written to"):
            writable(folder, "-o")


@pytest.mark.parametrize(("mode", "folder"), [(0o600, 0o700), (0o700, 0o700), (0o640, 0o777), (0o644, 0o777)])
def test_what_is_nobody_elses_lies_in_a_folder_that_is_nobody_elses(mode, folder):
    assert folder_mode(mode) == folder
