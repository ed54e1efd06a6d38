"""Test that toolkit repeats a call after a lost SSH connection; tests/full uses a real sshd."""

import hashlib
from pathlib import Path

import pytest

from toolkit.errors import Lost, Missing
from toolkit.model.progress import Silent
from toolkit.run import patience
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
from toolkit.run.patience import PatientRunner
from toolkit.run.stage import Parcel, part_name, stage


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(patience, "_LAST_PAUSE", 0.01)


class Breaking(LocalRunner):
    """A runner that loses its connection after each of the first ``times`` calls."""

    place = "far"

    def __init__(self, times, error=None):
        self.left, self.error, self.ran = times, error or Lost("far: the SSH connection was lost"), []

    def _maybe(self):
        if self.left:
            self.left -= 1
            raise self.error

    def run(self, command):
        self.ran.append(command.words[0])
        done = super().run(command)
        self._maybe()
        return done

    def read(self, target, offset=0, limit=None):
        self._maybe()
        return super().read(target, offset, limit)


class Cut(Breaking):
    """A runner that loses its connection during a copy, each time 3 bytes further."""

    def run(self, command):
        return LocalRunner.run(self, command)

    def send(self, source, target, progress=None):
        there = Path(target).stat().st_size if Path(target).exists() else 0
        progress(there, source.stat().st_size)
        if self.left:
            with Path(target).open("ab") as file:
                file.write(source.read_bytes()[there : there + 3])
            progress(there + 3, source.stat().st_size)
            self._maybe()
        super().send(source, target, progress)


class Told(Silent):
    def __init__(self):
        self.steps = []

    def step(self, text):
        self.steps.append(text)


def test_a_question_is_asked_again_and_the_loss_is_told_once(tmp_path):
    (tmp_path / "a").write_bytes(b"text")
    lost = []
    runner = PatientRunner(Breaking(3), lost.append)
    assert runner.read(str(tmp_path / "a"), 1) == b"ext"
    assert lost == ["far: the SSH connection was lost"]
    assert PatientRunner(Breaking(2), lost.append).run(Command.of("echo", "x")).text == "x\n"


def test_after_its_time_the_loss_is_what_is_told():
    with pytest.raises(Lost, match="the SSH connection was lost"):
        PatientRunner(Breaking(10**6), print, seconds=0.1).read("/nowhere")


def test_what_is_refused_is_not_tried_again():
    runner = Breaking(2, Missing("far port 22: ada was not let in"))
    with pytest.raises(Missing, match="not let in"):
        PatientRunner(runner, print).read("/nowhere")
    assert runner.left == 1


def test_a_copy_that_is_cut_twice_goes_on_and_arrives_whole(tmp_path):
    source = tmp_path / "a"
    source.write_bytes(b"0123456789")
    (tmp_path / "there").mkdir()
    tell = Told()
    assert stage(Cut(2), [Parcel.of(source, str(tmp_path / "there" / "b"))], tell) == 1
    assert (tmp_path / "there" / "b").read_bytes() == b"0123456789"
    assert [name.name for name in (tmp_path / "there").iterdir()] == ["b"]
    assert len([step for step in tell.steps if "trying again" in step]) == 2
    assert any("Resuming a after" in step for step in tell.steps)


def test_a_copy_may_break_as_often_as_it_likes_while_it_brings_more(tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.run.stage.AWAY_SECONDS", 0.05)
    source = tmp_path / "a"
    source.write_bytes(bytes(range(60)))
    assert stage(Cut(15), [Parcel.of(source, str(tmp_path / "b"))], Silent()) == 1
    assert (tmp_path / "b").read_bytes() == source.read_bytes()


def test_a_name_that_was_given_though_the_answer_was_lost_is_no_failure(tmp_path):
    source = tmp_path / "a"
    source.write_bytes(b"x")
    parcel = Parcel(source, str(tmp_path / "b"), hashlib.sha256(b"x").hexdigest())

    class Moving(Breaking):
        def _maybe(self):
            if self.ran[-1:] == ["mv"]:
                super()._maybe()

    runner = Moving(1)
    assert stage(runner, [parcel], Silent()) == 1
    assert runner.ran.count("mv") == 2
    assert (tmp_path / "b").read_bytes() == b"x"
    assert not Path(part_name(parcel)).exists()


def test_what_is_stopped_is_neither_tried_again_nor_told():
    place, told = Breaking(3), []
    patient = PatientRunner(place, told.append, 60)

    def lose(*_):
        patient.stop()
        raise Lost("far: the SSH connection was lost")

    place.run = lose
    with pytest.raises(Lost):
        patient.run(Command.of("true"))
    assert told == []
