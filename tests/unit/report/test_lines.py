"""Test line breaks: text breaks between words, and a shell reads a broken command as one command."""

import shlex

from tests.unit.tables import every_row
from toolkit.report.lines import command_lines, wrap_hanging, wrap_text

LONG = "PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
COMMAND = ("srun", "-n", "2", "apptainer", "exec", "--bind", "/a b", "my image.sif", "env", LONG, "COMMAND")


@every_row("width", [20, 40, 60, 100, 200])
def test_a_command_in_lines_is_the_same_command(width):
    lines = command_lines(COMMAND, 4, width)
    # A shell removes a backslash at the end of a line together with the line break.
    assert tuple(shlex.split("\n".join(lines).replace("\\\n", ""))) == COMMAND
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert not lines[-1].endswith("\\")
    assert all(len(line) <= width or len(shlex.split(line.rstrip(" \\"))) <= 2 for line in lines)


def test_an_option_stays_with_its_value():
    lines = command_lines(("apptainer", "exec", "--bind", "/data", "IMAGE"), 2, 20)
    assert lines == ["  apptainer exec \\", "    --bind /data \\", "    IMAGE"]
    assert command_lines(("a", "--", "COMMAND"), 0, 6) == ["a -- \\", "  COMMAND"]


def test_what_stands_first_is_followed_by_lines_that_are_indented_behind_it():
    assert command_lines(("srun", "IMAGE"), 2, 9, prefix="→ ") == ["  → srun \\", "      IMAGE"]


def test_no_word_is_broken_in_a_sentence():
    lines = wrap_text(f"set {LONG} and see rule host-launcher-other-family", 4, 30, prefix="· ")
    assert LONG in lines[1]
    assert any(line.endswith("host-launcher-other-family") for line in lines)
    assert lines[0] == "    · set"
    assert lines[1].startswith("      ")


def test_a_label_has_its_text_beside_it_or_below_where_there_is_no_room():
    text = "a text of some words that is wider than a line"
    assert wrap_hanging("label  ", text, None) == [f"label  {text}"]
    assert wrap_hanging("label  ", text, 30)[1].startswith("       that is")
    assert wrap_hanging("a label that is wide  ", text, 30)[1] == "    of some words that is"
    assert wrap_hanging("label  ", "", 30) == ["label"]
