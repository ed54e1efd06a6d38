"""What is written as TOML is read again as it was."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from toolkit.report.toml import toml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
PLAIN = st.one_of(TEXT, st.integers(-(2**40), 2**40), st.booleans(), st.lists(TEXT, min_size=1))
TABLE = st.dictionaries(TEXT, PLAIN, min_size=1)


@given(st.dictionaries(TEXT, st.one_of(PLAIN, TABLE, st.dictionaries(TEXT, TABLE, min_size=1)), min_size=1))
def test_a_table_comes_back_as_it_was(value):
    assert tomllib.loads(toml(value)) == value


def test_what_is_empty_is_left_out():
    assert toml({"a": "", "b": (), "c": None, "d": {}, "e": 0}) == "e = 0\n"


def test_a_long_list_has_a_word_a_line():
    assert toml({"a": ["x" * 60, "y" * 60]}).count("\n") == 4
