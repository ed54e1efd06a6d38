import pytest

from tests.unit.tables import every_row
from toolkit.trainers.data.synthetic import Synthetic, samples
from toolkit.trainers.data.views import turn_and_sample


def test_samples_of_any_shape_are_the_same_each_time():
    one, other = samples((5, 4, 3), 7, 50), samples((5, 4, 3), 7, 50)
    assert one.inputs.shape == (50, 5, 4, 3)
    assert (one.inputs == other.inputs).all()
    assert set(one.classes) == set(range(7))
    assert (one.inputs != samples((5, 4, 3), 7, 50, seed=2).inputs).any()


def test_more_than_memory_should_hold_is_refused():
    with pytest.raises(ValueError, match="use the class Synthetic"):
        samples((224, 224, 3), 1000, 100_000)
    assert len(Synthetic((224, 224, 3), 1000, 100_000)) == 100_000


@every_row(("number", "found"), [(0, (0, 0)), (4, (0, 4)), (5, (1, 0)), (13, (2, 3))])
def test_numbers_go_on_in_the_next_turn(number, found):
    assert turn_and_sample(number, 5) == found
