"""Test how toolkit reads and compares versions of packages, libraries and programs."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.versions import (
    OLDEST_PYTHON,
    is_rounded,
    is_same_version,
    is_wish,
    meets,
    older,
    parse,
    upstream,
    within,
)

numbers = st.lists(st.integers(0, 99), min_size=1, max_size=4).map(lambda n: ".".join(map(str, n)))
versions = st.tuples(numbers, st.sampled_from(["", "a1", "rc2", "-1+deb12u1", "~rc1-2+b1"])).map("".join)


def test_the_oldest_python_is_that_of_the_package():
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["requires-python"] == f">={OLDEST_PYTHON}"


@every_row(
    ("text", "plain"),
    [
        ("4.2.2-1+deb12u1", "4.2.2"),
        ("v4.1.4", "4.1.4"),
        ("5.0.8a1", "5.0.8a1"),
        ("7.0.0~rc1-2+b1", "7.0.0rc1"),
        ("2021.19.0", "2021.19.0"),
        ("1:4.5.1-1", "4.5.1"),
        ("23.02.7-bsc", "23.2.7"),
        ("6.6.1-arch1-1", "6.6.1"),
        ("4.1.6-BULL1", "4.1.6"),
        ("nothing", "nothing"),
    ],
)
def test_a_packagers_additions_are_left_out(text, plain):
    assert upstream(text) == plain


def test_a_pre_release_comes_before_its_release():
    assert within("6.0.0rc2", "<6.0.0")
    assert not within("6.0.0rc2", ">=6.0.0")


def test_bounds_are_joined_by_and():
    assert within("4.2.2", ">=4.2,<5")
    assert not within("5.0", ">=4.2,<5")
    assert within("4.2", "==4.2.0")


@every_row(
    ("text", "bounds", "rounded"),
    [
        ("20.11", ">=20.11.0,<20.11.3", True),
        ("20.11.1", ">=20.11.0,<20.11.3", False),
        ("20.11", ">=20.11.0,<21", False),
        ("2.2", "==2.2.2", True),
        ("2.3", "==2.2.2", False),
        ("4.1", ">=4.1,<5", False),
        ("6.0.0rc2", ">=6.0.0.1", False),
        ("unknown", ">=1.2.3", False),
    ],
)
def test_a_version_without_its_last_numbers_may_be_on_either_side_of_a_bound(text, bounds, rounded):
    assert is_rounded(text, bounds) is rounded


def test_no_version_is_within_no_bounds_but_the_empty_ones():
    assert not within("", ">=0")
    assert within("", "")


def test_a_bound_that_is_none_is_a_fault_of_the_table():
    with pytest.raises(ValueError, match="is not a bound"):
        within("1.0", "about 2")


def test_texts_that_name_no_version_must_be_equal():
    assert is_same_version("x", "x")
    assert not is_same_version("x", "1.0")
    assert is_same_version("4.2", "4.2.0-1")


@given(versions, versions, versions)
def test_ordering_is_total_and_transitive(a, b, c):
    x, y, z = parse(a), parse(b), parse(c)
    assert x is not None
    assert y is not None
    assert z is not None
    assert (x < y) + (x == y) + (x > y) == 1
    if x <= y <= z:
        assert x <= z


@given(versions, versions)
def test_within_agrees_with_the_order(a, b):
    assert within(a, f">={b}") != within(a, f"<{b}")
    assert is_same_version(a, b) == is_same_version(b, a)


@given(st.text())
def test_any_text_is_taken(text):
    parse(text)
    upstream(text)
    within(text, ">=1")


@every_row(
    ("left", "right", "expected"),
    [
        ("525.60.13", "525.105.17", True),
        ("2.6.32-754.el6.x86_64", "3.2.0", True),
        ("6.1.0-28-amd64", "3.2.0", False),
        ("3.2", "3.2.0", False),
        ("N/A", "3.2.0", False),
        ("3.2.0", None, False),
        (None, None, False),
    ],
)
def test_older_compares_what_both_name_and_nothing_else(left: str | None, right: str | None, expected: bool):
    assert older(left, right) is expected


@every_row("text", ["9" * 6000, "1." + "9" * 6000, "\u0663.\u0664", "", "v", "nonsense"])
def test_what_names_no_version_is_none(text: str):
    assert parse(text) is None


@every_row(
    ("version", "wish", "holds"),
    [
        ("2.15.1", "*", True),
        ("no version", "*", True),
        ("2.15.1", "2.15.*", True),
        ("2.150.1", "2.15.*", False),
        ("2.15", "2.15.*", True),
        ("2", "2.15.*", False),
        ("4.2.2-1+deb12u1", "4.2.*", True),
        ("2.15.1", "2.15.1", True),
        ("2.15.1", "2.15", False),
        ("2.15.0", "2.15", True),
        ("4.1.4", ">=4.1,<5", True),
        ("5.0.7", ">=4.1,<5", False),
        ("no version", ">=1", False),
        ("no version", "1.*", False),
    ],
)
def test_a_version_meets_what_is_asked_for(version, wish, holds):
    assert meets(version, wish) is holds


@every_row("wish", ["*", "2", "2.*", "2.15.1", "1.10.0rc1", ">=2.6,<2.16", "==1", ">=1, <2"])
def test_a_wish_can_be_read(wish):
    assert is_wish(wish)
    meets("1.0", wish)


@every_row("wish", ["", ",", ">=", "*.1", "2.*.1", "~=2", "=>2", ">=2,", "<x", ">=2.*", "two", "2 "])
def test_what_is_no_wish_is_told(wish):
    assert not is_wish(wish)


@given(st.text(alphabet="0123456789.*<>=,abrc +-~", max_size=12))
def test_whatever_is_a_wish_can_be_asked(text):
    if is_wish(text):
        assert meets("2.15.1", text) in {True, False}
