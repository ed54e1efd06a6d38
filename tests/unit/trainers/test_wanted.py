from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.checks.wanted import Requirements, parse
from toolkit.trainers.words import format_bytes, size


def test_only_the_number_of_tasks_is_needed():
    assert parse(["--tasks", "2"]) == Requirements(tasks=2)


def test_all_that_a_job_script_may_say_is_read():
    words = (
        "--tasks 8 --seconds 30 --nodes 2 --gpus-per-node 4 --fabric-gbit 100 --output /out --min-free 2G "
        "--min-free-tmp 1M --image /images/a.sif --max-skew 5"
    )
    assert parse(words.split()) == Requirements(
        tasks=8,
        seconds=30.0,
        nodes=2,
        gpus_per_node=4,
        fabric_gbit=100.0,
        output=Path("/out"),
        min_free=2 * 2**30,
        min_free_tmp=2**20,
        image=Path("/images/a.sif"),
        max_skew=5.0,
    )


@every_row(
    ("words", "said"),
    [
        ("--tasks 0", "0 is less than 1"),
        ("--tasks 2 --min-free 2X", "'2X' is not a size such as 500M or 2G"),
        ("--tasks 2 --min-free G", "is not a size"),
        ("--tasks 2 --fabric-gbit -1", "is not a positive number"),
        ("--tasks 2 --max-skew inf", "is not a positive number"),
        ("--tasks two", "invalid count value"),
    ],
)
def test_what_cannot_be_is_refused_with_status_2(words, said, capsys):
    with pytest.raises(SystemExit) as end:
        parse(words.split())
    assert end.value.code == 2
    assert said in capsys.readouterr().err


@every_row(("text", "count"), [("0", 0), ("12", 12), ("3k", 3072), ("1T", 2**40)])
def test_sizes_are_binary(text, count):
    assert size(text) == count


@every_row(
    ("count", "text"), [(5, "5 bytes"), (2048, "2 KiB"), (100 * 2**20, "100 MiB"), (3 * 2**40, "3 TiB")]
)
def test_sizes_are_written_short(count, text):
    assert format_bytes(count) == text
