"""What others wrote is shown and does nothing to a terminal."""

import pytest

from toolkit.report.plain import as_shown, one_line


def test_an_error_stays_on_its_line_whatever_it_quotes():
    assert one_line("a\nb\x1b[2Jc é") == "a?b?[2Jc é"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain é \u2588", "plain é \u2588"),
        ("\x1b[31mFATAL:  \x1b[0m no", "FATAL:   no"),
        ("\x1b[2J\x1b[1;1Hx\x1b[?25l", "x"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link", "xlink"),
        ("\x1bcx\x07\x9b31m", "?cx??31m"),
        ("a\tb", "a       b"),
        ("10 %\r20 %\r", "20 %"),
    ],
)
def test_a_line_is_shown_as_a_terminal_would_without_what_steers_it(line, shown):
    assert as_shown(line) == shown
