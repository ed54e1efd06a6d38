"""Test the options that belong to a single strategy."""

import argparse

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.ranks.spread import RankSpread


def spread(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    RankSpread.add_options(parser)
    return RankSpread.taken(vars(parser.parse_args(words)))


def test_nothing_said_is_for_all_strategies():
    assert spread() == RankSpread()
    assert all(not RankSpread().misplaced(name) for name in ("single", "horovod", "ps"))


@every_row(
    ("words", "strategy", "said"),
    [
        (
            ("--devices", "2"),
            "horovod",
            "--devices: only for --strategy mirrored or hybrid, not for horovod",
        ),
        (("--servers", "1"), "multiworker", "--servers: only for --strategy ps, not for multiworker"),
        (("--sync",), "single", "--sync: only for --strategy ps, not for single"),
        (("--ksteps", "0"), "ps", "--ksteps: only for --strategy mpi-aggregate, not for ps"),
    ],
)
def test_what_another_strategy_takes_is_told(words, strategy, said):
    assert spread(*words).misplaced(strategy) == said


def test_a_strategy_takes_its_own():
    assert spread("--devices", "3").misplaced("mirrored") == ""
    assert spread("--sync", "--servers", "2") == RankSpread(servers=2, sync=True)
    assert spread("--ksteps", "4") == RankSpread(ksteps=4)


@every_row("words", [("--ksteps", "-1"), ("--devices", "0"), ("--servers", "x")])
def test_numbers_are_checked(words):
    with pytest.raises(argparse.ArgumentError):
        spread(*words)
