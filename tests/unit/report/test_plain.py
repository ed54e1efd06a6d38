"""Test that toolkit shows text from others, but removes its control characters."""

import json
import sys
import unicodedata

from tests.unit.tables import every_row
from toolkit.report.plain import (
    MESSAGE_LIMIT,
    add_style,
    bound_message,
    colour_styles,
    join_lines,
    make_line_visible,
    make_output_visible,
    make_visible,
    one_line,
    remove_styles,
)


def test_an_error_stays_on_its_line_whatever_it_quotes():
    assert one_line("a\nb\tc\x1b[2Jd é") == "a\\nb\\tc\\u001b[2Jd é"
    assert join_lines(["a\nb", "c"]) == "a\\nb\nc"


@every_row(
    ("line", "shown"),
    [
        ("plain é \u2588", "plain é \u2588"),
        ("\x1b[31mFATAL:  \x1b[0m no", "FATAL:   no"),
        ("\x1b[2J\x1b[1;1Hx\x1b[?25l", "x"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link", "xlink"),
        ("\x1bcx\x07\x9b31m", "\\u001bcx\\u0007\\u009b31m"),
        ("a\tb", "a       b"),
        ("10 %\r20 %\r", "20 %"),
    ],
)
def test_a_line_is_shown_as_a_terminal_would_without_what_steers_it(line, shown):
    assert make_line_visible(line) == shown


def test_the_output_of_a_job_keeps_its_lines():
    assert make_output_visible("1 %\r2 %\n\n\x1b[31mred\x1b[0m\n") == "2 %\n\nred\n"


def test_every_character_that_is_not_drawn_is_shown_and_the_others_stay():
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        kind = unicodedata.category(character)
        if kind in hidden and character not in "\t\n":
            assert make_visible(character).startswith("\\u"), ascii(character)
        elif kind[0] in "NPS" or kind in {"Lu", "Ll", "Lt", "Zs"} or character in "\t\n":
            assert make_visible(character) == character, ascii(character)


def test_letters_of_every_script_stay():
    text = "Ærøskøbing, Łódź, Ελλάδα, Россия, 日本, 한국, עברית, العربية, हिन्दी, ไทย"
    assert one_line(text) == text


@every_row("character", ["\u3164", "\u115f", "\ufe0f", "\u034f", "\ufdd0"])
def test_letters_and_marks_that_are_not_drawn_are_shown(character):
    assert make_visible(f"a{character}b") == f"a\\u{ord(character):04x}b"


def test_what_is_made_visible_in_json_keeps_its_value():
    value = {"a": "\x1b\x9b\u202e\u2028\U000e0041\x7f\\\u202e"}
    text = make_visible(json.dumps(value, ensure_ascii=False))
    assert text.isprintable()
    assert json.loads(text) == value


def test_only_styles_of_this_process_become_codes():
    text = make_visible(f"{add_style('ok', '32')} \x1b[31mno\x1b[0m")
    assert colour_styles(text) == "\x1b[32mok\x1b[0m \\u001b[31mno\\u001b[0m"
    assert remove_styles(text) == "ok \\u001b[31mno\\u001b[0m"
    assert one_line(add_style("a\nb", "1")) == add_style("a\\nb", "1")


def test_a_message_has_no_long_word_and_an_end():
    path = "/a" * 300
    assert bound_message(f"{path}: no such file") == f"{path[:100]}…{path[-98:]}: no such file"
    assert bound_message("y" * 200) == "y" * 200
    assert len(bound_message("word " * 1000)) == MESSAGE_LIMIT
    assert len(bound_message("\x1b" * 6000)) == 200
