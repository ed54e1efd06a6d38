"""Test how a rank estimates the clock of the Gloo store from the store's answers."""

import time
from email.utils import formatdate

from tests.unit.tables import every_row
from tests.unit.trainers.test_gloo import served, task
from toolkit.trainers.checks.board import Board


def test_a_store_on_the_same_machine_has_the_same_clock():
    with served(task()) as store:
        board = Board(f"127.0.0.1/{store.path}", store.server_address[1], time.monotonic() + 20)
        board.write("a", "b")
        assert board.read("a") == "b"
    assert board.ahead == 0


@every_row("ahead", [30.0, -30.0])
def test_a_clock_that_differs_is_told_within_a_second(ahead):
    board = Board("127.0.0.1", 1, 0)
    now = time.time()
    for _ in range(3):
        board._compare(now, formatdate(now - ahead, usegmt=True))
    assert abs(board.ahead - ahead) < 1.2
    assert board.ahead * ahead > 0


@every_row("date", [None, "", "yesterday"])
def test_an_answer_without_a_date_tells_nothing(date):
    board = Board("127.0.0.1", 1, 0)
    board._compare(time.time(), date)
    assert board.ahead == 0
