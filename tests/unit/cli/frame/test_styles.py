"""Test the width of output: the terminal's width, and a fixed width in a pipe."""

import sys

from tests.unit.tables import every_row
from toolkit.cli.frame.faults import print_error
from toolkit.cli.frame.styles import width_of_stdout, width_of_terminal
from toolkit.errors import BadInput


class Stdout:
    def __init__(self, *, terminal: bool) -> None:
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@every_row(("columns", "width"), [("40", 40), ("132", 132), ("3", 30)])
def test_a_narrow_terminal_is_believed(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", Stdout(terminal=True))
    assert width_of_stdout() == width_of_terminal() == width


@every_row("terminal", [True, False])
def test_an_error_breaks_between_words_on_a_terminal(monkeypatch, capsys, terminal):
    monkeypatch.setenv("COLUMNS", "40")
    said = "a " + "bb " * 12 + "ccc-ddd e"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    print_error(BadInput(said, fix="x " * 60))
    *error, hint = capsys.readouterr().err.splitlines()
    assert " ".join(line.strip() for line in error) == f"error: {said}"
    assert (max(map(len, error)) <= 40) is terminal
    assert len(hint) > 100


def test_the_rows_of_a_table_stay_whole_in_a_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Stdout(terminal=False))
    assert width_of_terminal() is None
