"""Test which files of a job a pattern selects, and how they are copied to this machine."""

import os

import pytest

from tests.unit.launch.examples import RECORD
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.job.project.pack import MOMENT
from toolkit.job.running.fetch import fetch, in_words, list_results, match_patterns
from toolkit.model.progress import Silent
from toolkit.run.local import LocalRunner


@pytest.fixture
def record(tmp_path):
    import msgspec

    folder = tmp_path / "run"
    files = {
        "job.sh": "x", "variables.sh": "x", "exit-code": "0", "output.log": "said", "toolkit-gloo.py": "x",
        "project/train.py": "x", "project/__pycache__/net.cpython-311.pyc": "x",
        "project/model.keras": "m" * 3000, "logs/1/events": "e", "metrics.csv": "1,2",
    }  # fmt: skip
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    os.utime(folder / "project" / "train.py", (MOMENT, MOMENT))
    spec = msgspec.structs.replace(RECORD.spec, directory=str(folder), output="output.log")
    return msgspec.structs.replace(RECORD, key="run-1", spec=spec)


def test_what_a_job_wrote_is_not_what_it_was_given(record):
    files = list_results(LocalRunner(), record)
    assert [one.path for one in files] == ["logs/1/events", "metrics.csv", "model.keras", "output.log"]
    line = in_words(record, files)
    assert line.startswith("The job wrote model.keras (3.00 kB), metrics.csv")
    assert line.endswith("toolkit jobs fetch run-1")


@every_row(
    ("pattern", "found"),
    [
        ("*.keras", "model.keras"),
        ("logs", "logs/1/events"),
        ("logs/", "logs/1/events"),
        ("logs/*", "logs/1/events"),
        ("events", "logs/1/events"),
    ],
)
def test_a_pattern_chooses(record, pattern, found):
    assert [one.path for one in match_patterns(list_results(LocalRunner(), record), [pattern])] == [found]


def test_a_pattern_that_matches_nothing_is_an_error(record):
    with pytest.raises(BadInput, match=r"\*\.h5: no file of the job matches") as error:
        match_patterns(list_results(LocalRunner(), record), ["*.keras", "*.h5"])
    assert "model.keras" in error.value.fix


def test_only_what_is_new_is_copied(record, tmp_path):
    runner, target = LocalRunner(), tmp_path / "here"
    files = list_results(runner, record)
    assert len(fetch(runner, files, target, Silent())) == 4
    assert (target / "model.keras").read_text() == "m" * 3000
    assert fetch(runner, files, target, Silent()) == []
    (tmp_path / "run" / "metrics.csv").write_text("9,9")
    assert fetch(runner, list_results(runner, record), target, Silent()) == [target / "metrics.csv"]
    assert not list(target.rglob("*.part"))


def test_an_interrupted_copy_is_resumed(record, tmp_path, monkeypatch):
    runner, target = LocalRunner(), tmp_path / "here"
    files = match_patterns(list_results(runner, record), ["model.keras"])
    monkeypatch.setattr("toolkit.job.running.fetch._PIECE", 1000)
    read, asked = runner.read, []

    def breaking(path, offset=0, limit=None):
        asked.append(offset)
        if offset == 2000 and asked.count(2000) == 1:
            raise CheckFailed("lost")
        return read(path, offset, limit)

    monkeypatch.setattr(runner, "read", breaking)
    with pytest.raises(CheckFailed, match="lost"):
        fetch(runner, files, target, Silent())
    assert fetch(runner, files, target, Silent()) == [target / "model.keras"]
    assert asked == [0, 1000, 2000, 2000, 3000]


def test_a_file_that_changes_meanwhile_is_not_kept(record, tmp_path, monkeypatch):
    runner, target = LocalRunner(), tmp_path / "here"
    files = match_patterns(list_results(runner, record), ["metrics.csv"])
    monkeypatch.setattr(runner, "read", lambda path, offset=0, limit=None: b"" if offset else b"else")
    with pytest.raises(CheckFailed, match="changed while it was copied"):
        fetch(runner, files, target, Silent())
    assert list(target.iterdir()) == []
