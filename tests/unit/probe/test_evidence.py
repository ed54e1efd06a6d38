"""The text of a probe: what counts as an answer, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import CheckFailed
from toolkit.probe.evidence import parse
from toolkit.probe.facts import host_facts

ANSWER = "toolkit-probe/1\n@ kernel\n|6.1.0\n@rc 0\n@ gpu\n@rc 127\n@end\n"


def test_sections_keep_their_lines_and_status():
    sections = parse(ANSWER, "here")
    assert sections["kernel"].lines == ("6.1.0",)
    assert sections["kernel"].ok
    assert sections["gpu"].missing


def test_a_login_banner_is_dropped():
    assert "kernel" in parse(f"Welcome to the cluster!\n@ not a section\n{ANSWER}", "here")


def test_an_answer_that_was_cut_is_no_empty_machine():
    with pytest.raises(CheckFailed, match="login: the answer of the probe was cut"):
        parse(ANSWER.removesuffix("@end\n"), "login")


def test_no_answer_at_all_shows_what_came_instead():
    with pytest.raises(CheckFailed, match="did not answer") as error:
        parse("This account is not available.\n", "login")
    assert error.value.detail == ("This account is not available.",)


def test_a_raw_line_cannot_pass_for_the_end():
    sections = parse("toolkit-probe/1\n@ kernel\n|@end\n|@rc 1\n@rc 0\n@end\n", "here")
    assert sections["kernel"].lines == ("@end", "@rc 1")


def test_a_question_that_took_too_long_says_so():
    sections = parse("toolkit-probe/1\n@ kernel\n@rc 124\n@end\n", "here")
    assert sections["kernel"].trouble == "no answer in time"


@given(st.lists(st.tuples(st.sampled_from(["slurm", "mpi-list", "runtime", "pmix", "launchers"]), st.text())))
def test_facts_are_read_from_any_answer(questions):
    body = "".join(
        f"@ {name}\n" + "".join(f"|{line}\n" for line in text.splitlines()) + "@rc 0\n"
        for name, text in questions
    )
    host_facts("here", parse(f"toolkit-probe/1\n{body}@end\n", "here"))
