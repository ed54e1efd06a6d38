import importlib
from pathlib import Path
from typing import get_args

import pytest

import toolkit.trainers
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.knowledge.trainers import trainers as table
from toolkit.launch.request import trainers
from toolkit.launch.tracking import relaunch
from toolkit.model.facts import ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import JobFile, Strategy
from toolkit.trainers.strategies import STRATEGIES, strategies_of


def test_a_persons_own_arguments_come_last_and_win():
    words = trainers.find("mnist").command("/d", "/o", "horovod", ("--epochs", "1"))
    assert words[:3] == ("python", "-m", "toolkit.trainers.mnist")
    assert words[-2:] == ("--epochs", "1")


def test_a_trainer_that_makes_its_data_is_given_none():
    words = trainers.find("imagenet-synthetic").command("", "/o", "single", ())
    assert words == (
        "python",
        "-m",
        "toolkit.trainers.imagenet_synthetic",
        "--output",
        "/o",
        "--strategy",
        "single",
    )


def test_every_trainer_of_the_images_is_known():
    files = Path(toolkit.trainers.__file__).parent.glob("*.py")
    named = {file.stem.replace("_", "-") for file in files if "\nTRAINER" in file.read_text()}
    assert named == set(trainers.shipped_trainers())


def test_each_trainer_is_a_module_of_its_own_with_the_same_name_and_data():
    for name, known in trainers.shipped_trainers().items():
        trainer = importlib.import_module(known.program[1]).TRAINER
        assert trainer.name == name
        assert (trainer.data if trainer.fetched else "") == known.dataset
        assert known.data_required == (not trainer.fetched)


def test_the_strategies_are_those_of_the_trainers():
    assert get_args(Strategy) == tuple(STRATEGIES)


def test_an_unknown_trainer_names_the_choices():
    with pytest.raises(BadInput, match="trainer 'x': not found; choices: mnist"):
        trainers.find("x")


def test_a_file_of_ones_own_is_a_trainer_where_it_lies():
    own = trainers.find("~/work/my net.py")
    assert (own.name, own.own, own.dataset) == ("my-net", True, "")
    words = own.at("/base/programs/ab/my net.py").command("/d", "/o", "single", ("--epochs", "1"))
    assert words[:4] == ("python", "/base/programs/ab/my net.py", "--data", "/d")
    assert words[-2:] == ("--epochs", "1")


def test_what_a_trainer_was_given_is_read_back_from_its_command():
    for name, data in (("mnist", "/d"), ("imagenet-synthetic", ""), ("my.py", "/d"), ("my.py", "")):
        known = trainers.find(name).at("/programs/my.py")
        command = known.command(data, "/o", "single", ("--epochs", "1", "--data", "/other"))
        spec = JobSpec(name="x", image="/i", command=command, directory="/o", trainer=name)
        assert relaunch.arguments(spec) == ("--epochs", "1", "--data", "/other")


@every_row(
    ("job", "modes"),
    [
        (JobFile(trainer="mnist"), ("gloo",)),
        (JobFile(trainer="mnist", strategy="ps"), ("gloo",)),
        (JobFile(trainer="mnist", strategy="mpi-aggregate"), ()),
        (JobFile(trainer="mnist", strategy="ddp"), ()),
        (JobFile(trainer="mnist", strategy="fsdp"), ()),
        (JobFile(trainer="mnist", strategy="jax"), ()),
        (JobFile(command=("python", "train.py")), ()),
    ],
)
def test_trainers_start_without_an_mpi_where_there_is_none_that_fits(job, modes):
    assert trainers.other_modes(job) == modes


@every_row(
    ("words", "program"),
    [
        (("--strategy", "ddp"), "torch"),
        (("--strategy", "fsdp"), "torch"),
        (("--strategy", "jax"), "jax"),
        (("--strategy", "multiworker"), "tf-config"),
        (("--strategy", "horovod"), "horovod"),
        (("--strategy", "ddp", "--epochs", "1", "--strategy", "horovod"), "horovod"),
        ((), "horovod"),
    ],
)
def test_the_last_strategy_says_how_ranks_find_each_other(words, program):
    assert trainers.program_of(("python", "-m", "toolkit.trainers.mnist", *words)) == program


@every_row(
    ("job", "facts", "absent", "strategy"),
    [
        (JobFile(trainer="mnist"), {"pytorch": "2.13.0"}, ("tensorflow",), "ddp"),
        (JobFile(trainer="mnist"), {"jax": "0.10.2"}, ("tensorflow",), "jax"),
        (JobFile(trainer="mnist"), {"jax": "0.10.2", "pytorch": "2.13.0"}, ("tensorflow",), "ddp"),
        (JobFile(trainer="mnist"), {"pytorch": "2.13.0"}, (), None),
        (JobFile(trainer="mnist"), {"tensorflow": "2.21.0"}, ("horovod", "mpi"), "multiworker"),
        (JobFile(trainer="mnist"), {"tensorflow": "2.15.1", "horovod": "0.28.1"}, (), None),
        (JobFile(trainer="mnist"), {"pytorch": "2.13.0", "horovod": "0.28.1"}, ("tensorflow",), "ddp"),
        (JobFile(trainer="mnist"), {}, ("tensorflow",), None),
        (JobFile(trainer="mnist", strategy="horovod"), {"pytorch": "2.13.0"}, ("tensorflow",), "horovod"),
        (JobFile(command=("python", "t.py")), {"jax": "0.10.2"}, ("tensorflow",), None),
    ],
)
def test_an_image_without_horovod_trains_in_the_framework_that_it_has(job, facts, absent, strategy):
    image = ImageFacts(path="i", format="sif", absent=dict.fromkeys(absent, "looked for"), **facts)
    assert trainers.with_strategy(job, image).strategy == strategy


def test_the_table_has_the_strategies_of_every_framework():
    known = {row.fact: row.strategies for row in table().framework}
    assert known.pop("tensorflow") == ("multiworker",)
    assert known == {name: strategies_of(name) for name in ("pytorch", "jax")}
    frameworks = {row.framework for row in STRATEGIES.values()}
    assert frameworks == {"tensorflow", *known}
