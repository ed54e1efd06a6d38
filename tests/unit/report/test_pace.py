import json

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.launch.tracking.pace import Pace, describe_pace, duration, pace

HEADER = {"record": "header", "schema": "toolkit.metrics/1", "epochs": 12, "versions": {}}


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def epoch(number, seconds=10.0):
    return {"record": "epoch", "epoch": number, "seconds": seconds, "images_per_second": 4321.4}


def test_what_is_done_and_what_is_left_are_told():
    now = pace(lines(HEADER, epoch(1, 99.0), epoch(2), epoch(3), epoch(4)))
    assert now == Pace(complete_epochs=4, epochs=12, images_per_second=4321.4, seconds_left=80.0)
    assert describe_pace(now) == "epoch 5 of 12, 4,321 images/s, about 80 s left"
    assert describe_pace(now, seconds=75) == "epoch 5 of 12, 4,321 images/s, about 5 s left"


def test_numbers_out_of_range_do_not_stop_who_follows_a_job():
    assert pace(lines({**HEADER, "epochs": 10**400}, epoch(1))) is None
    assert pace(lines(HEADER, epoch(1), epoch(2, 10**400))).complete_epochs == 1


def test_a_speed_below_one_is_no_speed_of_0():
    slow = {**epoch(1), "images_per_second": 0.4231}
    assert "epoch 2 of 12, 0.423 images/s" in describe_pace(pace(lines(HEADER, slow)))


def test_before_the_first_epoch_nothing_is_guessed():
    assert describe_pace(pace(lines(HEADER))) == "epoch 1 of 12"


def test_all_done_and_going_on_are_told():
    short = {**HEADER, "epochs": 1}
    assert describe_pace(pace(lines(short, epoch(1)))) == "1 of 1 epochs are done, 4,321 images/s"
    assert describe_pace(pace(lines(HEADER, {"record": "resumed"}))).endswith("resumed 1 time")


@every_row("text", [b"", b"\xff\n", b"{}\n", b"[1]\n", b'{"record": "header", "epochs": 0}\n'])
def test_what_are_no_metrics_say_nothing(text):
    assert pace(text) is None


@given(st.binary(max_size=200))
def test_a_file_that_is_being_written_is_read_as_far_as_it_goes(rest):
    assert pace(lines(HEADER) + b"\n" + rest) is not None


@every_row(
    ("seconds", "said"),
    [(0, "0 s"), (89, "89 s"), (600, "10 min"), (7200, "2 h"), (12000, "3 h 20 min"), (190000, "2 d 4 h")],
)
def test_durations_have_the_units_that_matter(seconds, said):
    assert duration(seconds) == said
