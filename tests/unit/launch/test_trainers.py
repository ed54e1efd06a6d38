import pytest

from toolkit.errors import BadInput
from toolkit.launch import trainers


def test_a_persons_own_arguments_come_last_and_win():
    words = trainers.find("mnist").command("/d", "/o", "horovod", ("--epochs", "1"))
    assert words[:3] == ("python", "-m", "toolkit.trainers.mnist")
    assert words[-2:] == ("--epochs", "1")


def test_an_unknown_trainer_names_the_choices():
    with pytest.raises(BadInput, match="no trainer 'x'; choices: mnist"):
        trainers.find("x")
