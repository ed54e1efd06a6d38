"""Test that an image has the versions and the launch mode that the solver chose for it."""

import json

import pytest

from tests.services.program import toolkit
from tests.services.ready import RECIPE
from tests.services.workers import CLUSTER
from toolkit.engine.predict import predict
from toolkit.engine.solver.stack_prediction import stack_facts
from toolkit.image.inspect import inspect
from toolkit.image.locks.lock import load_lock
from toolkit.knowledge.stacks import stacks
from toolkit.model.prediction import Request
from toolkit.probe.probe import load
from toolkit.versions import is_same_version

OPERATIONS = ("mpi", "gloo")
LEFT = ("base", "python", "keras")
"""Components that the version test skips: the image's facts lack them, or have them in another form."""


@pytest.fixture(scope="module")
def solution(training_sif):
    return load_lock(RECIPE).solution


@pytest.fixture(scope="module")
def inside(training_sif):
    return inspect(str(training_sif))


@pytest.fixture(scope="module")
def saved(cluster, tmp_path_factory):
    file = tmp_path_factory.mktemp("facts") / "facts.json"
    toolkit("probe", "--cluster", CLUSTER, "-o", str(file))
    return file


def test_the_image_has_the_versions_that_were_chosen(solution, inside):
    found = {
        "tensorflow": inside.tensorflow,
        "horovod": inside.horovod,
        "mpi4py": inside.mpi4py,
        "pmix": inside.pmix,
        "ucx": inside.ucx,
        inside.mpi.implementation: inside.mpi.version,
    }
    chosen = {c.component: c.version for c in solution.chosen if c.component not in LEFT}
    assert set(found) == set(chosen)
    assert all(is_same_version(found[name], version) for name, version in chosen.items()), (found, chosen)
    assert inside.python.startswith(solution.versions["python"] + ".")


def test_the_image_is_judged_as_it_was_foreseen(solution, inside, saved):
    table = stacks()
    taken = {
        c.component: next(
            r for r in table.rows(c.component) if (r.version, r.provider) == (c.version, c.provider)
        )
        for c in solution.chosen
    }
    host = load(saved)
    guessed = predict(host, stack_facts(table, "x86_64", taken, OPERATIONS), Request())
    real = predict(host, inside, Request())
    assert [(p.mode, p.outcome) for p in guessed.predictions] == [
        (p.mode, p.outcome) for p in real.predictions
    ]


def test_the_doctor_chooses_the_way_that_the_solver_named(saved, training_sif):
    solved = json.loads(toolkit("image", "solve", RECIPE, "--facts", str(saved), "--json").stdout)
    judged = json.loads(toolkit("doctor", str(training_sif), "--facts", str(saved), "--json").stdout)
    assert solved["mode"] == judged["chosen"] == "srun-pmix"
