"""Test that toolkit removes a container after any error between its creation and its last use."""

import signal
import threading
from types import SimpleNamespace

import docker
import pytest

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.run.docker.containers import Box, RunResult, create_container, run_once


class Engine:
    """A fake Docker client that records its containers; it calls ``during`` while it creates a container."""

    def __init__(self, during=lambda: None):
        self.there = set()
        self.during = during
        self.api = SimpleNamespace(create_container=self._create, remove_container=self._remove)

    def _create(self, image, command, *, name, **settings):
        self.during()
        self.there.add(name)

    def _remove(self, name, **how):
        self.there.remove(name)


def test_it_is_there_within_the_block_and_gone_after_it():
    engine = Engine()
    with create_container(engine, "small", ["true"], "trying") as name:
        assert engine.there == {name}
    assert engine.there == set()


def test_an_interrupt_while_the_engine_makes_it_leaves_none():
    engine = Engine(during=lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), create_container(engine, "small", ["true"], "trying"):
        pytest.fail("nothing runs in it any more")
    assert engine.there == set()


def test_a_refusal_is_told_and_leaves_none():
    def refuse():
        raise ZeroDivisionError

    engine = Engine(during=refuse)
    with pytest.raises(ZeroDivisionError), create_container(engine, "small", ["true"], "trying"):
        pytest.fail("there is none to use")
    assert engine.there == set()


def test_two_have_two_names():
    engine = Engine()
    with (
        create_container(engine, "small", ["true"], "trying"),
        create_container(engine, "small", ["true"], "trying"),
    ):
        assert len(engine.there) == 2


class Container:
    def __init__(self, quick=False):
        self.ended, self.seen, self.quick = threading.Event(), threading.Event(), quick

    def start(self):
        if self.quick:
            self.ended.set()

    def logs(self, **how):
        yield b"one\ntw"
        assert self.ended.wait(10)
        yield b"o"

    def wait(self):
        return {"StatusCode": 0 if self.quick else 137}

    def kill(self):
        self.ended.set()
        self.seen.wait(10)


@every_row("quick", [True, False])
def test_a_container_that_is_ended_for_its_time_is_not_taken_for_one_that_was_killed(quick):
    engine, container = Engine(), Container(quick)
    engine.api.create_host_config = lambda **how: how
    engine.containers = SimpleNamespace(get=lambda name: container)
    ran = run_once(engine, Box("small", timeout=60 if quick else 0.01), ["true"])
    container.seen.set()
    assert ran == RunResult(0 if quick else 137, ("one", "two"), timed_out=not quick)
    assert engine.there == set()


def test_the_reason_of_a_refusal_is_given():
    def refuse(*_, **__):
        raise docker.errors.APIError("x", explanation="no such image: small")

    engine = SimpleNamespace(
        api=SimpleNamespace(create_container=refuse, remove_container=lambda name, **how: None)
    )
    with (
        pytest.raises(CheckFailed, match="reported an error while toolkit was trying: no such image"),
        create_container(engine, "small", ["true"], "trying"),
    ):
        pytest.fail("there is none to use")
