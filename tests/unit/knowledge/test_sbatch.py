import pytest

from tests.unit.tables import every_row
from toolkit.knowledge.sbatch import is_one_option, reserved_name, words

NAMES = ("output", "o", "ntasks", "ntasks-per-node", "chdir", "D")


@every_row(
    ("line", "split"),
    [
        ("--comment=x --output=/dev/null", ["--comment=x", "--output=/dev/null"]),
        ("--comment='x y'", ["--comment=x y"]),
        ('--comment="it\'s"', ["--comment=it's"]),
        (r"--comment=x\ y", ["--comment=x y"]),
        (r"--comment=\"x", ['--comment="x']),
        ("--comment=x # why", ["--comment=x"]),
        ("--comment='#1'", ["--comment=#1"]),
        ("--comment='' -p gpu", ["--comment=", "-p", "gpu"]),
        ("", []),
    ],
)
def test_a_line_is_split_as_sbatch_splits_it(line, split):
    assert words(line) == split


def test_an_open_quotation_mark_is_an_error():
    with pytest.raises(ValueError, match="closing"):
        words("--comment='x")


@every_row("line", ["--hold", "--comment=x", "--comment x", "-p gpu", "-H", r"--comment=x\ y"])
def test_one_option_is_one(line):
    assert is_one_option(line)


@every_row(
    "line",
    [
        "--comment=x --output=/dev/null",
        "--hold --output=x",
        "--hold -o /x",
        "-p gpu -o x",
        "--comment='x",
        "--comment=x y",
        "--comment='my hetjob'",
        "--comment=PACKJOB",
        "x",
        "# x",
        "",
    ],
)
def test_more_than_one_option_or_component_is_not(line):
    assert not is_one_option(line)


@every_row(
    ("line", "name"),
    [
        ("--output=/x", "output"),
        ("--outp=/tmp/x", "output"),
        ("--o=/x", "output"),
        ("--chdi=/", "chdir"),
        ("--ntasks-per-n=3", "ntasks-per-node"),
        ("--nt=3", "ntasks"),
        ("-o x", "o"),
        ("-ox", "o"),
        ("-D /", "D"),
        ("--comment=output", ""),
        ("--open-files=3", ""),
        ("-p o", ""),
    ],
)
def test_an_abbreviation_is_the_option_that_it_stands_for(line, name):
    assert reserved_name(line, NAMES) == name
