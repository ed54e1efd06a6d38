"""Test how wide a page is: as the terminal, and as it always was in a pipe."""

import sys

from tests.unit.tables import every_row
from toolkit.cli.frame.styles import width_of_stdout, width_of_terminal


class Stdout:
    """Stands for standard output, on a terminal or not."""

    def __init__(self, *, terminal: bool) -> None:
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@every_row(("columns", "width"), [("40", 40), ("132", 132), ("3", 30)])
def test_a_narrow_terminal_is_believed(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", Stdout(terminal=True))
    assert width_of_stdout() == width_of_terminal() == width


def test_the_rows_of_a_table_stay_whole_in_a_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Stdout(terminal=False))
    assert width_of_terminal() is None
