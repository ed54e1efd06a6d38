"""Test site profiles on a real cluster: toolkit writes, checks and uses them, and reports differences."""

import json

import pytest

from tests.services.program import toolkit


@pytest.fixture
def profile(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    toolkit("init", "--yes", "--cluster", cluster.name, "--name", "here")
    return tmp_path / "toolkit" / "sites" / "here.toml"


def check(cluster, name="here", ok=True):
    done = toolkit("site", "check", name, "--cluster", cluster.name, "--json", ok=ok)
    told = json.loads(done.stdout)
    return done.returncode, {point["field"]: point for point in told["points"]}


def test_init_writes_a_profile_that_holds_and_every_point_of_it_is_decided(cluster, profile):
    shown = json.loads(toolkit("site", "show", "here", "--json").stdout)
    assert shown["container"]["command"] == "apptainer"
    assert shown["container"]["binds"] == ["/work"]
    assert (shown["launch"]["mode"], shown["launch"]["mpi"]) == ("srun-pmix", "pmix")
    assert (shown["directory"], shown["scratch"], shown["network"]) == ("$WORK/toolkit", "/tmp", "eth0")
    part = shown["partitions"][0]
    assert (part["name"], part["default"], part["max_time"], part["nodes"]) == ("debug", True, "UNLIMITED", 2)
    status, points = check(cluster)
    assert status == 0
    assert {point["state"] for point in points.values()} == {"holds"}
    assert "ada" not in profile.read_text() + profile.with_suffix(".facts.json").read_text().replace(
        "adaptive", ""
    )


def test_what_no_longer_holds_is_named_and_ends_in_1(cluster, profile):
    text = profile.read_text()
    for old, new in (
        ('name = "debug"', 'name = "batch"'),
        ('partition = "debug"', 'partition = ""'),
        ('binds = ["/work"]', 'binds = ["/work", "/gpfs"]\nmodules = ["apptainer/9"]'),
        ('mpi = "pmix"', 'mpi = "pmix_v1"'),
        ('network = "eth0"', 'network = "ib0"'),
        ('scratch = "/tmp"', 'scratch = "/nvme"'),
        ('directory = "$WORK/toolkit"', 'directory = "$STORE/toolkit"'),
        ('command = "apptainer"', 'command = "sarus"'),
    ):
        assert old in text
        text = text.replace(old, new)
    profile.write_text(text)
    status, points = check(cluster, ok=False)
    assert status == 1
    differs = {field for field, point in points.items() if point["state"] == "differs"}
    wanted = "partitions[0].name container.binds[1] container.modules[0] launch.mpi network scratch directory"
    assert differs == {*wanted.split(), "container.command"}
    assert "unknown partition; partitions: debug" in points["partitions[0].name"]["text"]
    lines = toolkit("site", "check", "here", "--cluster", cluster.name, ok=False).stdout.splitlines()
    assert "differs    container.binds[1]: /gpfs: does not exist on compute nodes" in lines
    assert len(lines) == len(differs) + 1


def test_the_shipped_profile_of_the_virtual_cluster_holds(cluster):
    status, points = check(cluster, "virtual")
    assert status == 0
    assert {point["state"] for point in points.values()} == {"holds"}


def test_a_job_runs_by_the_profile_that_init_wrote(cluster, profile, training_sif):
    words = ["--site", "here", "--cluster", cluster.name, "--image", str(training_sif), "--nodes", "2"]
    done = toolkit("launch", *words, "--", "printenv", "TMPDIR")
    assert done.stdout.count("/tmp") >= 2


def test_a_profile_is_not_replaced_and_a_place_without_slurm_has_none(cluster, profile):
    kept = profile.read_bytes()
    again = toolkit("init", "--yes", "--cluster", cluster.name, "--name", "here", ok=False)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert profile.read_bytes() == kept
    without = toolkit("init", "--yes", "--name", "none", ok=False)
    assert without.returncode == 3
    assert not profile.with_name("none.toml").exists()
