"""Test toolkit's messages for errors of the Docker SDK."""

import docker.errors
import pytest
import requests.exceptions

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed, Missing
from toolkit.run.docker.engine_errors import no_engine, translate_errors


def test_a_refusal_of_the_engine_is_told_in_its_words():
    error = docker.errors.APIError("x", response=None, explanation="name in use")
    said = "the Docker engine reported an error while toolkit was tagging a: name in use"
    with pytest.raises(CheckFailed, match=said), translate_errors("tagging a"):
        raise error


@every_row(
    "error", [requests.exceptions.ConnectionError("Connection aborted."), ConnectionResetError(104, "reset")]
)
def test_an_engine_that_went_away_is_missing(error):
    with (
        pytest.raises(Missing, match="stopped answering while toolkit was building a") as caught,
        translate_errors("building a"),
    ):
        raise error
    assert "systemctl start docker" in caught.value.fix


def test_silence_is_told_as_such():
    error = requests.exceptions.ReadTimeout("HTTPConnectionPool: Read timed out. (read timeout=1)")
    with pytest.raises(CheckFailed, match="did not answer in time"), translate_errors("building a"):
        raise error


def test_faults_of_our_own_pass_unchanged():
    with pytest.raises(ZeroDivisionError), translate_errors("counting"):
        1 / 0  # noqa: B018 - raised on purpose


@every_row(
    ("said", "message"),
    [
        (
            "('Connection aborted.', PermissionError(13, 'Permission denied'))",
            "has no access to the Docker engine",
        ),
        ("('Connection aborted.', FileNotFoundError(2, 'No such file'))", "no Docker engine answers on"),
        (
            "('Connection aborted.', ConnectionRefusedError(111, 'Connection refused'))",
            "no Docker engine answers",
        ),
        ("Invalid bind address", "no Docker engine answers on ssh://x: Invalid bind address"),
    ],
)
def test_why_no_engine_answers(said, message):
    error = no_engine(docker.errors.DockerException(said), "ssh://x")
    assert message in error.message
    assert error.fix
