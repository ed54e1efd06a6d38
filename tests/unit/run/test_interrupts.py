"""Test that a signal interrupts a protected section only at its end."""

import signal

import pytest

from toolkit.run.interrupts import delay_signals


@pytest.fixture
def interrupting():
    """Let SIGTERM raise ``KeyboardInterrupt``, as :mod:`toolkit.cli.main` does."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    kept = signal.signal(signal.SIGTERM, interrupt)
    yield interrupt
    signal.signal(signal.SIGTERM, kept)


def test_what_the_engine_makes_is_waited_for_before_an_interrupt_is_heeded(interrupting):
    steps = []
    with pytest.raises(KeyboardInterrupt), delay_signals():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        steps.append("made")
    assert steps == ["made"]
    assert signal.getsignal(signal.SIGTERM) is interrupting


def test_what_fails_meanwhile_fails_as_it_does(interrupting):
    with pytest.raises(ZeroDivisionError), delay_signals():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) is interrupting


def test_what_nohup_has_ignored_stays_ignored(interrupting):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with delay_signals():
        signal.raise_signal(signal.SIGTERM)
