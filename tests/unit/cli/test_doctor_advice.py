"""Test that ``toolkit doctor`` never recommends a launch that it predicts to fail."""

import shlex
from functools import cache
from itertools import pairwise

import msgspec
import pytest

from tests.matrix.record import Truth, load
from tests.unit.engine import whole
from tests.unit.engine.examples import HOST, IMAGE, MPICH, OPEN_MPI_4, image_with, with_, without
from tests.unit.engine.test_fixes import named, outcomes
from tests.unit.tables import check_all, every_row
from tests.unit.thorough import share
from toolkit.cli.doctor.advice import DoctorRequest, NextStep, advise
from toolkit.engine.predict import predict
from toolkit.errors import BadInput
from toolkit.image.locks.match_recipe import match_recipe
from toolkit.image.startable import STARTABLE_FORMATS
from toolkit.job.request.inputs import StartableImage, find_startable
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import MPI_MODES, Mode, Request, Verdict

PLACE, FACTS = ("--host", "login"), ("--facts", "facts.json")


@cache
def truth() -> Truth:
    return load()


def advice(host: HostFacts, image: ImageFacts, **request) -> NextStep:
    asked = Request(**request)
    return advise(DoctorRequest(host, image, asked, PLACE, FACTS), predict(host, image, asked))


@every_row("place", sorted(load().hosts))
def test_nothing_is_advised_that_the_verdict_says_fails(place: str):
    names = sorted(truth().images)
    check_all(lambda name: check_advice(place, name), share(names, sorted(truth().hosts).index(place), 3))


def check_advice(place: str, name: str) -> None:
    host, image = truth().hosts[place], truth().images[name].facts
    verdict = predict(host, image, Request())
    for mode in share((None, *MPI_MODES, "gloo"), sorted(truth().images).index(name), 8):
        judged = _in(mode, verdict)
        said = advise(DoctorRequest(host, image, Request(mode=mode), PLACE, FACTS), judged)
        assert bool(said.text) == (judged.chosen is None), mode
        becomes = outcomes(judged)
        wrong = {m for m in named(said.text) if becomes[m] != "ok" and m != mode}
        assert not wrong, f"{mode}: {said.text}"
        assert said.command.startswith("toolkit ")
        assert _works(said.command, place, name, verdict), said.command


def _in(mode: Mode | None, verdict: Verdict) -> Verdict:
    """Return ``verdict`` for a user who requests ``mode``: the choice is this mode if it works, or none."""
    if mode is None:
        return verdict
    return msgspec.structs.replace(verdict, chosen=mode if verdict.ok(mode) else None)


def test_the_mode_that_is_asked_for_decides_nothing_but_what_is_chosen():
    host = truth().hosts["pmix"]
    for number, (name, record) in enumerate(truth().images.items()):
        mode = MPI_MODES[number % len(MPI_MODES)]
        request = Request(mode=mode)
        assert predict(host, record.facts, request) == _in(mode, predict(host, record.facts, Request())), name
        assert match_recipe(host, record.facts, request) == match_recipe(host, record.facts, Request())


def _works(command: str, place: str, name: str, verdict: Verdict) -> bool:
    """Return whether the engine predicts that a suggested launch works. Other commands count as working."""
    words = shlex.split(command)
    if words[1] != "launch":
        return True
    given = dict(pairwise(words))
    nodes, ranks = int(given["--nodes"]), int(given.get("--ranks-per-node", "1"))
    usual = Request(nodes=nodes, ranks_per_node=ranks) == Request()
    judged = verdict if usual else _verdict(place, name, nodes, ranks)
    return bool(_in(given.get("--mode"), judged).chosen)


@cache
def _verdict(place: str, name: str, nodes: int, ranks: int) -> Verdict:
    request = Request(nodes=nodes, ranks_per_node=ranks)
    return predict(truth().hosts[place], truth().images[name].facts, request)


def test_a_mode_that_works_stands_in_for_the_one_that_was_asked_for():
    said = advice(HOST, image_with(MPICH), mode="srun-pmix")
    assert said.text == "Use mode srun-pmi2 instead of srun-pmix: toolkit predicts that srun-pmi2 works."
    assert said.command == "toolkit launch --image /images/train.sif --nodes 2 --host login -- COMMAND"


def test_gloo_has_to_be_named_as_a_launch_takes_it_only_then():
    no_mpi = with_(
        without(image_with(OPEN_MPI_4), "mpi"), horovod="0.28.1", horovod_built=("gloo",), programs={}
    )
    said = advice(HOST, no_mpi)
    assert said.text == "Use mode gloo: toolkit predicts that gloo works. Mode gloo works only for Horovod."
    assert "--mode gloo" in said.command


def test_what_fails_every_mode_comes_before_what_fails_one():
    image = truth().images["venv-impi-2021.6.0"].facts
    said = advice(truth().hosts["pmix"], image)
    assert said.text.startswith("Install libfabric in the image")


def test_one_node_is_named_where_it_is_predicted_to_work():
    old = truth().images["ubuntu-openmpi-2.1.1-ssh"].facts
    said = advice(truth().hosts["pmix"], old)
    assert said.text.startswith("toolkit predicts that the launch works with both ranks on one node.")
    assert "--nodes 1 --ranks-per-node 2" in said.command
    assert "one node" not in advice(truth().hosts["pmix"], old, nodes=1, mode="srun-pmi2").text


def test_options_that_fix_writes_are_named_where_they_make_it_work(monkeypatch):
    """Replace ``find_fix``, because the engine's plans already contain every fix that ``find_fix`` knows."""
    host, image = truth().hosts["pmix"], truth().images["venv-impi-2021.6.0"].facts
    monkeypatch.setattr("toolkit.cli.doctor.advice.find_fix", lambda *_: object())
    said = advice(host, image)
    assert said.text.endswith("toolkit predicts that the launch works with the options that --fix writes.")
    assert said.command == f"toolkit doctor {image.path} --nodes 2 --facts facts.json --fix"


def test_facts_that_are_missing_are_asked_for_first():
    silent = with_(HOST, unknown={"slurm": "no answer in time"}, slurm=None)
    said = advice(silent, IMAGE)
    assert "host.slurm" in said.text
    assert said.command == "toolkit probe --host login -o facts.json"


@every_row("form", sorted(STARTABLE_FORMATS | {"sandbox", "docker-archive", "oci-layout", "oci-sif"}))
def test_what_is_advised_to_be_launched_is_taken_by_launch(form):
    facts = with_(IMAGE, format=form, path="./box")
    launched = advice(HOST, facts).command.startswith("toolkit launch ")
    found = StartableImage("box", facts, "", None, "./box")
    if launched:
        assert find_startable(found, "apptainer") is found
    else:
        with pytest.raises(BadInput, match="needs a SIF file"):
            find_startable(found, "apptainer")


def test_layers_are_made_a_sif_first():
    said = advice(HOST, with_(IMAGE, format="docker-archive", path="train.tar"))
    assert said == NextStep(command="apptainer build train.sif docker-archive:train.tar")


def test_gpus_are_asked_for_where_the_image_computes_on_them():
    said = advice(whole.HOST, whole.IMAGE).command
    assert f"--gpus-per-node {len(whole.HOST.gpus)}" in said
    on_processors = whole.absent(whole.HOST, "gpu_driver")
    assert "--gpus-per-node" not in advice(on_processors, whole.IMAGE).command
