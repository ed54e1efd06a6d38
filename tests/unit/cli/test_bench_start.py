"""Test ``toolkit bench start``, which prints how long each part of a job's start took."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.launch.examples import RECORD
from tests.unit.launch.recorded import Recorded
from tests.unit.study.test_start_parts import SCRIPT, metrics
from toolkit.cli.main import cli
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.job import places
from toolkit.launch.tracking import records

FOLDER = RECORD.spec.directory


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def shown(*words):
    return CliRunner().invoke(cli, ["bench", "start", *words], obj={}, catch_exceptions=True)


def place(monkeypatch, files):
    monkeypatch.setattr(places, "open_runner", lambda *_: Recorded(files))


def test_a_job_is_read_from_the_cluster_once_and_then_from_its_record(monkeypatch):
    records.save(RECORD)
    place(monkeypatch, {f"{FOLDER}/start-times": SCRIPT.encode(), f"{FOLDER}/metrics.jsonl": metrics(5)})
    done = shown(RECORD.key, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["schema"], found["job"], found["first_step_seconds"]) == (
        "toolkit.start/1",
        RECORD.key,
        16.0,
    )
    place(monkeypatch, {})
    assert json.loads(shown(RECORD.key, "--json").stdout) == found
    assert "mount" in shown().stdout


def test_the_folder_of_a_job(tmp_path):
    (tmp_path / "start-times").write_text(SCRIPT)
    done = shown(str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "job script" in done.stdout


def test_a_job_without_times(monkeypatch, tmp_path):
    records.save(RECORD)
    place(monkeypatch, {})
    for job in (RECORD.key, str(tmp_path)):
        assert isinstance(shown(job).exception, CheckFailed)


def test_a_job_that_started_again_has_no_queue(monkeypatch):
    again = msgspec.structs.replace(RECORD, restarts=1)
    records.save(again)
    records.keep(again, records.SCRIPT, b"#!/bin/bash\n")
    place(monkeypatch, {f"{FOLDER}/start-times": SCRIPT.encode()})
    assert "queue" not in shown(RECORD.key).stdout


def test_what_is_wrong_is_told(monkeypatch):
    assert isinstance(shown("nothing").exception, BadInput)
    refused = shown("--nodes", "2").exception
    assert isinstance(refused, BadInput)
    assert "--nodes" in refused.message
    array = msgspec.structs.replace(RECORD, spec=msgspec.structs.replace(RECORD.spec, array="0-3"))
    records.save(array)
    assert "each task" in shown(RECORD.key).exception.message

    def away(*_):
        raise Missing("away")

    monkeypatch.setattr(places, "open_runner", away)
    records.save(RECORD)
    assert isinstance(shown(RECORD.key).exception, Missing)


def test_a_command_after_dashes_is_launched_with_the_options(monkeypatch):
    called = {}

    def launch(program, **options):
        called.update(options, program=program)
        records.save(done)
        records.keep(done, records.TIMES, SCRIPT.encode())
        return done

    done = msgspec.structs.replace(RECORD, state="completed")
    monkeypatch.setattr("toolkit.app.launch", launch)
    ran = shown("mnist", "--nodes", "2", "--cluster", "demo", "--", "--epochs", "1")
    assert ran.exit_code == 0, ran.exception
    assert called["program"] == "mnist"
    assert called["arguments"] == ("--epochs", "1")
    assert (called["nodes"], called["cluster"], called["follow"]) == (2, "demo", True)
    assert "job script" in ran.stdout
