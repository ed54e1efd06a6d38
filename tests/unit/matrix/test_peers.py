"""Test that the engine predicts the recorded outcomes of programs without MPI on the virtual cluster."""

import re

from tests.matrix.peers.launches import COMMANDS, OF_IMAGE, PROGRAMS, wanted
from tests.matrix.peers.outcome import classify
from tests.matrix.peers.run import TRUTH
from tests.matrix.peers.score import predicted
from tests.matrix.record import Cell, encoded, load
from tests.unit.tables import check_all, every_row
from toolkit.program.command import read_command

RECORD = load(TRUTH)
IMAGES = sorted(RECORD.images)
OPEN = {"MASTER_ADDR=node1", "MASTER_ADDR=node2", "MASTER_ADDR=login", "MASTER_ADDR=nowhere.invalid"}
"""Launches with an open outcome: the facts do not say which node is the first node of a job."""


def name(cell: Cell) -> str:
    return cell.name


def is_open(cell: Cell) -> bool:
    return cell.trap in OPEN or cell.trap.startswith(
        ("JAX_COORDINATOR_ADDRESS=node", "JAX_COORDINATOR_ADDRESS=now")
    )


def foretold(cell: Cell) -> None:
    said = predicted(cell, RECORD)
    if is_open(cell) and said.outcome == "unknown":
        return
    assert said.foretells(cell.outcome), f"{said.outcome}: {said.why}; {cell.line!r}; {cell.argv}"


@every_row("image", IMAGES)
def test_a_launch_is_predicted_as_it_happened(image: str):
    check_all(foretold, [cell for cell in RECORD.cells if cell.image == image], name)


def test_no_rank_that_is_alone_is_called_right():
    silent = [cell for cell in RECORD.cells if cell.outcome in {"singletons", "wrong-size"}]
    assert not [cell.name for cell in silent if predicted(cell, RECORD).outcome in {"ok", "unknown"}]


def test_most_launches_are_decided():
    told = [predicted(cell, RECORD).outcome for cell in RECORD.cells]
    assert told.count("unknown") <= len(told) / 6


def test_the_record_covers_programs_shapes_and_outcomes():
    assert len(RECORD.cells) >= 24
    assert {cell.outcome for cell in RECORD.cells} >= {"ok", "init-failure", "hang"}
    shapes = {(cell.request.nodes, cell.request.ranks_per_node) for cell in RECORD.cells}
    assert shapes >= {(2, 1), (1, 2)}


def test_what_is_recorded_of_a_program_is_what_its_text_says():
    for cell in RECORD.cells:
        shown = read_command(cell.request.command, PROGRAMS)
        assert (shown.joins, dict(shown.says)) == (cell.request.joins, cell.request.says), cell.name


def test_a_cell_is_recorded_once_with_an_outcome_that_was_seen():
    names = [cell.name for cell in RECORD.cells]
    assert len(names) == len(set(names))
    for cell in RECORD.cells:
        assert cell.outcome in cell.seen
        assert cell.silent == (cell.exit == 0 and cell.outcome != "ok")


def test_the_record_tells_nothing_of_the_machine_that_made_it():
    text = "".join(encoded(RECORD).values())
    assert not re.search(r"/(root|home/(?!ada\b)\w+|tmp/w|work/main|work/w-)\b", text)


@every_row("image", OF_IMAGE)
def test_every_program_of_an_image_has_a_file_and_each_launch_a_name(image: str):
    for program in OF_IMAGE[image]:
        file = next(word for word in COMMANDS[program] if word.endswith((".py", ".sh")))
        assert (PROGRAMS / file).is_file()
    place = next(iter(RECORD.hosts.values()))
    facts = next(iter(RECORD.images.values())).facts
    names = [launch.name for launch in wanted(image, "pmix", place, facts)]
    assert len(names) == len(set(names)) > 20


OK = '{"rank": 0, "size": 2, "comm": "%s"}'


@every_row(
    ("text", "status", "late", "outcome"),
    [
        (f"{OK % 'begun'}\n{OK % 'begun'}\n0: {OK % 'ok'}\n1: {OK % 'ok'}", 0, False, "ok"),
        (f"{OK % 'begun'}\n{OK % 'begun'}\n{OK % 'ok'}\n{OK % 'wrong'}", 0, False, "comm-failure"),
        (f"{OK % 'begun'}\n{OK % 'ok'}", 0, False, "wrong-size"),
        (OK.replace("2", "1") % "begun", 0, False, "singletons"),
        (OK.replace("2", "1") % "begun", 1, False, "singletons"),
        (OK.replace("2", "4") % "begun", 1, False, "wrong-size"),
        (f"{OK % 'begun'}\nBus error (core dumped)", 135, False, "crash"),
        (OK % "begun", 1, False, "comm-failure"),
        (OK % "started", 1, False, "init-failure"),
        ("x: error while loading shared libraries: libc.so", 127, False, "loader-failure"),
        ("", 0, False, "init-failure"),
        (OK % "started", 124, True, "hang"),
        (OK % "begun", None, True, "hang"),
        (OK.replace("2", "1") % "begun", None, True, "singletons"),
    ],
)
def test_an_outcome_is_told_by_what_the_ranks_print(text: str, status: int, late: bool, outcome: str):
    assert classify(text, status, late, 2).outcome == outcome
