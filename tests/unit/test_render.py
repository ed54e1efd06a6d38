import shlex

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.render import load, quote_word, quote_words, render


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))), min_size=1))
def test_quoted_words_are_read_back_as_they_were(words):
    assert shlex.split(quote_words(words)) == words


def test_a_nul_byte_cannot_be_quoted():
    with pytest.raises(BadInput, match="NUL"):
        quote_word("a\0")


def test_a_value_that_is_not_given_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        render("slurm", "job.sh.j2", {})


@every_row("template", ["job.sh.j2", "job.pbs.sh.j2"])
def test_a_template_that_was_loaded_before_is_not_read_again(monkeypatch, template):
    load("slurm", template)
    monkeypatch.setattr(jinja2.FileSystemLoader, "get_source", lambda *_: pytest.fail("it was read again"))
    with pytest.raises(jinja2.UndefinedError):
        render("slurm", template, {})
