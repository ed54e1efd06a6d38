"""Test what interrupts a training: a file, a signal, and the interval between checkpoints."""

import os
import signal

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.training import watch
from toolkit.trainers.training.watch import STOP, NextSteps, Watch, name_job, stop_file, was_restarted


@pytest.fixture
def asked(tmp_path):
    return tmp_path / STOP


def test_undisturbed_it_goes_on_with_as_many_steps_as_it_would(asked):
    with Watch(Single(), 600, asked) as one:
        assert one.look(40) == NextSteps(stop=False, save=False, steps=40)


def test_a_file_asks_to_stop(asked):
    with Watch(Single(), 600, asked) as one:
        asked.touch()
        assert one.look(1).stop


@every_row("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_asks_to_stop_and_means_what_it_did_afterwards(asked, number):
    before = signal.getsignal(number)
    with Watch(Single(), 600, asked) as one:
        os.kill(os.getpid(), number)
        assert one.look(1).stop
    assert signal.getsignal(number) == before


def test_other_ranks_ask_the_disk_nothing_and_have_no_say_in_the_steps(asked):
    class Second(Single):
        rank = 1

        def total(self, values):
            self.said = values
            return [0, 0, 9]

    asked.touch()
    second = Second()
    with Watch(second, 0.0, asked) as one:
        assert one.look(40).steps == 9
    assert second.said == [False, False, 0]


def test_a_checkpoint_is_due_after_its_time_and_then_again(asked, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    with Watch(Single(), 10, asked) as one:
        now[0] = 109.0
        assert not one.look(1).save
        now[0] = 110.0
        assert one.look(1).save
        one.saved()
        assert not one.look(1).save


def test_the_file_is_in_the_folder_of_the_job_else_of_the_output(tmp_path):
    assert stop_file({"TOOLKIT_JOB_DIR": "/job"}, tmp_path).as_posix() == "/job/stop-asked"
    assert stop_file({"TOOLKIT_JOB_DIR": ""}, tmp_path) == tmp_path / STOP


@every_row(
    ("environment", "name"),
    [
        ({}, ""),
        ({"SLURM_JOB_ID": "7"}, "7"),
        ({"SLURM_JOB_ID": "7", "TOOLKIT_JOB_DIR": "/runs/a"}, "/runs/a"),
        ({"SLURM_JOB_ID": "7", "TOOLKIT_JOB_DIR": ""}, "7"),
    ],
)
def test_all_runs_of_a_job_have_one_name(environment, name):
    assert name_job(environment) == name


@every_row(
    ("environment", "expected"),
    [
        ({}, False),
        ({"SLURM_RESTART_COUNT": ""}, False),
        ({"SLURM_RESTART_COUNT": "0"}, False),
        ({"SLURM_RESTART_COUNT": "1"}, True),
        ({"SLURM_RESTART_COUNT": "10"}, True),
        ({"TOOLKIT_JOB_DIR": "/none"}, False),
    ],
)
def test_slurm_counts_how_often_it_started_a_job(environment, expected):
    assert was_restarted(environment) is expected


def test_a_job_that_follows_another_has_the_count_in_its_folder(tmp_path):
    (tmp_path / "restarts").write_text("1")
    assert was_restarted({"TOOLKIT_JOB_DIR": str(tmp_path)})
