"""Test that toolkit finds wrong options of a shipped trainer before it submits the job."""

import sys

import msgspec

from tests.unit.launch.examples import SPEC
from tests.unit.tables import every_row
from toolkit import __version__
from toolkit.job.request.traineroptions import trainer_faults
from toolkit.launch.request import trainers
from toolkit.model.facts import ImageFacts
from toolkit.run.command import Completed
from toolkit.run.local import LocalRunner

IMAGE = ImageFacts(path="x.sif", format="sif", stack={"toolkit": __version__})


class Forbidden:
    place = "this machine"

    def run(self, command):
        raise AssertionError(command)


def spec(*words, trainer="mnist", strategy="horovod", nodes=2):
    known = trainers.find(trainer)
    command = known.command("/data", "/run", strategy, words)
    return msgspec.structs.replace(SPEC, trainer=trainer, command=command, nodes=nodes, ranks_per_node=1)


def faults(*words, image=IMAGE, here=None, **more):
    return [one.message for one in trainer_faults(spec(*words, **more), image, here or LocalRunner())]


@every_row(
    ("words", "more", "message"),
    [
        (("--epoch", "2"), {}, "mnist has no option --epoch (did you mean --epochs?)"),
        (("--epochs", "two"), {}, "mnist: argument --epochs: invalid count value: 'two'"),
        (
            ("--model", "x"),
            {"trainer": "mnist-cnn"},
            "mnist-cnn: argument --model: invalid choice: 'x'",
        ),
        (
            (),
            {"strategy": "mirrored"},
            "--strategy mirrored trains in one process, but the job has 2 ranks",
        ),
        (("--strategy", "single"), {}, "--strategy single trains in one process, but the job has 2 ranks"),
    ],
)
def test_a_wrong_option_is_found(words, more, message):
    (found,) = faults(*words, **more)
    assert found.startswith(message)


def test_right_options_have_no_fault():
    assert faults("--epochs", "2", "--batch-size", "64") == []
    assert faults(strategy="mirrored", nodes=1) == []


@every_row(
    ("image", "more"),
    [
        (msgspec.structs.replace(IMAGE, stack={"toolkit": "0.0.1"}), {}),
        (msgspec.structs.replace(IMAGE, stack=None), {}),
        (IMAGE, {"trainer": "net.py"}),
    ],
)
def test_nothing_is_run_for_other_releases_and_files_of_the_user(image, more):
    assert faults("--epoch", "2", image=image, here=Forbidden(), **more) == []


def test_a_python_that_cannot_load_the_trainers_forbids_nothing():
    class Broken:
        place = "this machine"

        def run(self, command):
            assert command.words[:2] == (sys.executable, "-P")
            return Completed(command, 1, b"", b"ModuleNotFoundError: no such module\n")

    assert faults("--epoch", "2", here=Broken()) == []
