"""Test that the engine predicts the outcome of each recorded training, and chooses a mode that works."""

import re

import msgspec

from tests.matrix.trainings import RECORD, Trained, Trainings, Wanted, load, save, wanted
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.model.prediction import Verdict

RAN = load()
ROWS = RAN.trainings
MODES = {"srun-pmix", "srun-pmi2", "mpirun-host", "mpirun-container", "bind", "gloo"}


def verdict(one: Trained) -> Verdict:
    wanted = one.wanted
    return predict(RAN.hosts[wanted.place], RAN.images[wanted.image], wanted.request)


@every_row("one", ROWS, ids=lambda one: one.wanted.name)
def test_what_happened_is_what_was_predicted_then_and_is_now(one: Trained):
    prediction = verdict(one).of(one.wanted.mode)
    assert (one.predicted, prediction.outcome) == (one.outcome, one.outcome), f"{one.line}; {prediction}"


@every_row("one", ROWS, ids=lambda one: one.wanted.name)
def test_the_choice_is_the_one_that_launch_made(one: Trained):
    assert verdict(one).chosen == one.chosen
    assert one.by_itself == (one.chosen == one.wanted.mode)


@every_row("one", [r for r in ROWS if r.outcome == "ok"], ids=lambda one: one.wanted.name)
def test_one_that_worked_trained_all_its_ranks_together(one: Trained):
    request = one.wanted.request
    assert (one.exit, one.nodes) == (0, request.nodes)
    assert one.world_size == request.nodes * request.ranks_per_node == 2
    assert one.accuracy is not None
    assert one.accuracy >= 0.96


@every_row("one", [r for r in ROWS if r.outcome != "ok"], ids=lambda one: one.wanted.name)
def test_one_that_failed_said_so_before_the_training(one: Trained):
    assert one.exit != 0
    assert (one.world_size, one.accuracy) == (None, None)
    assert one.line


def test_every_mode_trained_two_ranks():
    worked = [one for one in ROWS if one.outcome == "ok"]
    assert {one.wanted.mode for one in worked} == MODES
    # tests/full/jobs/test_mpirun_nodes.py tests a launcher inside the container with two nodes.
    over_nodes = {one.wanted.mode for one in worked if one.wanted.nodes == 2}
    assert over_nodes == MODES - {"mpirun-container"}


def test_what_the_engine_chose_by_itself_worked():
    chosen = {(one.wanted.place, one.wanted.image): one for one in ROWS if one.by_itself}
    assert {one.wanted.mode for one in chosen.values()} >= {"srun-pmix", "srun-pmi2", "mpirun-host"}
    assert all(one.outcome == "ok" for one in chosen.values())


def test_failures_of_more_than_one_kind_were_tried_and_a_silent_one_among_them():
    assert {"singletons", "init-failure"} <= {one.outcome for one in ROWS}


def test_all_of_the_file_ran_once():
    assert [one.wanted for one in ROWS] == list(wanted())


def test_the_record_tells_nothing_of_the_machine_that_made_it():
    assert not re.search(r"/(root|home/(?!ada\b)\w+|tmp/w|work/main)\b", RECORD.read_text())


def test_a_training_takes_the_place_of_its_last_run_and_those_of_another_file_go(tmp_path):
    host, image = next(iter(RAN.hosts.values())), next(iter(RAN.images.values()))
    one = Wanted(image="i", flavour="pmix", mode="gloo")
    done = Trained(wanted=one, predicted="ok", chosen=None, by_itself=False, outcome="hang", exit=1)
    record = Trainings()
    record.put(host, image, done)
    record.put(host, image, msgspec.structs.replace(done, outcome="ok"))
    assert [t.outcome for t in record.trainings] == ["ok"]
    other = msgspec.structs.replace(done, wanted=msgspec.structs.replace(one, mode="bind"))
    record.put(host, msgspec.structs.replace(image, digest="sha256:0"), other)
    assert record.trainings == [other]
    save(record, tmp_path / "record.json")
    assert load(tmp_path / "record.json") == record
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]
