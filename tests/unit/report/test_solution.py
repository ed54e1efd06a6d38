"""Test that the table of a solution fits the terminal's width and omits no package."""

from tests.unit.tables import every_row
from toolkit.image.locks.recipe import load
from toolkit.image.locks.solve_recipe import solve_recipe
from toolkit.report.solution import lines

NAMED = load("tf2.15-cpu")


@every_row("width", [20, 80, 100, 500])
def test_every_reason_is_there_in_whole(width):
    solution = solve_recipe(NAMED)
    text = " ".join(" ".join(lines(NAMED.recipe, solution, width)).split())
    for chosen in solution.chosen:
        assert chosen.version in text
        assert chosen.why in text


def test_a_line_is_no_wider_than_the_terminal():
    assert max(map(len, lines(NAMED.recipe, solve_recipe(NAMED), 90)[1:])) <= 90
