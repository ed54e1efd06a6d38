"""Test that an error names the unreadable sample."""

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.data.faults import reading
from toolkit.trainers.trouble import Trouble

InvalidArgumentError = type("InvalidArgumentError", (Exception,), {})
UnknownError = type("UnknownError", (Exception,), {})


class Pictures:
    def __init__(self):
        self.asked = []

    def fault(self, sample):
        self.asked.append(sample)
        return "7.jpg: is incomplete" if sample == 7 else ""


def fail(error):
    raise error


def test_the_first_sample_at_fault_is_named_and_no_further_one_is_looked_at():
    source = Pictures()
    with pytest.raises(Trouble, match=r"^7\.jpg: is incomplete$") as told, reading(source, [3, 7, 9]):
        fail(InvalidArgumentError("Invalid JPEG data"))
    assert (told.value.code, source.asked) == (2, [3, 7])


@every_row(
    ("source", "numbers", "error"),
    [
        (Pictures(), [1, 2], InvalidArgumentError("of the model")),
        (Pictures(), [7], UnknownError("a rank is gone")),
        (Pictures(), [7], KeyboardInterrupt()),
        (object(), [7], InvalidArgumentError("nobody knows")),
    ],
)
def test_what_no_sample_is_the_cause_of_stays_what_it_is(source, numbers, error):
    with pytest.raises(type(error)) as told, reading(source, numbers):
        fail(error)
    assert told.value is error


def test_nothing_is_looked_at_where_nothing_failed():
    source = Pictures()
    with reading(source, [7]):
        pass
    assert source.asked == []
