"""A container goes whatever happens between the question for it and the end of its use."""

import signal
from types import SimpleNamespace

import pytest

from toolkit.run.containers import made


class Engine:
    """Keeps the names of the containers that there are; ``during`` happens while it makes one."""

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
    with made(engine, "small", ["true"], "trying") as name:
        assert engine.there == {name}
    assert engine.there == set()


def test_an_interrupt_while_the_engine_makes_it_leaves_none():
    engine = Engine(during=lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), made(engine, "small", ["true"], "trying"):
        pytest.fail("nothing runs in it any more")
    assert engine.there == set()


def test_a_refusal_is_told_and_leaves_none():
    def refuse():
        raise ZeroDivisionError

    engine = Engine(during=refuse)
    with pytest.raises(ZeroDivisionError), made(engine, "small", ["true"], "trying"):
        pytest.fail("there is none to use")
    assert engine.there == set()


def test_two_have_two_names():
    engine = Engine()
    with made(engine, "small", ["true"], "trying"), made(engine, "small", ["true"], "trying"):
        assert len(engine.there) == 2
