"""Test that values written as TOML are read back unchanged."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from toolkit.report.toml import toml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
PLAIN = st.one_of(TEXT, st.integers(-(2**40), 2**40), st.booleans(), st.lists(TEXT, min_size=1))
LINES = st.lists(st.text("ab\"\\ #'", max_size=5), min_size=1).map(lambda lines: "\n".join(lines) + "\n")
TABLE = st.dictionaries(TEXT, PLAIN, min_size=1)


@given(st.dictionaries(TEXT, st.one_of(PLAIN, TABLE, st.dictionaries(TEXT, TABLE, min_size=1)), min_size=1))
def test_a_table_comes_back_as_it_was(value):
    assert tomllib.loads(toml(value)) == value


SHORT = st.text('ab."\n\\', min_size=1, max_size=4)
ROW = st.dictionaries(
    SHORT, st.one_of(SHORT, st.dictionaries(SHORT, SHORT, min_size=1, max_size=2)), max_size=3
)


@given(st.dictionaries(SHORT, st.lists(ROW, min_size=1, max_size=3), max_size=3))
def test_lists_of_tables_come_back_as_they_were(value):
    assert tomllib.loads(toml({"plain": 1, **value})) == {"plain": 1, **value}


@given(LINES)
def test_lines_come_back_as_they_were(text):
    assert tomllib.loads(toml({"notes": text})) == {"notes": text}


def test_lines_are_written_as_lines():
    assert toml({"notes": "one\ntwo\n"}) == 'notes = """\none\ntwo\n"""\n'


def test_what_is_empty_is_left_out():
    assert toml({"a": "", "b": (), "c": None, "d": {}, "e": 0}) == "e = 0\n"


def test_a_long_list_has_a_word_a_line():
    assert toml({"a": ["x" * 60, "y" * 60]}).count("\n") == 4
