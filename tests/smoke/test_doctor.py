"""Test `toolkit doctor`: it reads image and cluster, and the launch that it recommends works."""

import json
import re

import pytest

from tests.services.jobs import as_root
from tests.services.program import toolkit
from toolkit.errors import Missing
from toolkit.run.remote.ssh import SshRunner


def test_the_doctor_reads_image_and_cluster_and_chooses(cluster, training_sif):
    done = toolkit("doctor", str(training_sif), "--cluster", cluster.name, "--json")
    found = json.loads(done.stdout)
    assert found["chosen"] == "srun-pmix"
    assert found["host"]["pmix"] == "5.0.7"
    assert found["host"]["place"] == f"cluster {cluster.name}"
    outcomes = {p["mode"]: p["outcome"] for p in found["predictions"]}
    assert outcomes["srun-pmi2"] == "singletons"


def test_facts_that_were_saved_give_the_same_verdict(cluster, training_sif, tmp_path):
    facts = tmp_path / "facts.json"
    toolkit("probe", "--cluster", cluster.name, "-o", str(facts))
    done = toolkit("doctor", str(training_sif), "--facts", str(facts), "--mode", "srun-pmi2", ok=False)
    assert done.returncode == 1
    assert "supports neither PMI-1 nor PMI-2" in done.stdout


def test_a_cluster_that_is_not_up_is_missing(training_sif):
    done = toolkit("doctor", str(training_sif), "--cluster", "nosuch", ok=False)
    assert done.returncode == 3
    assert "toolkit cluster up" in done.stderr


def test_an_unknown_host_is_refused_with_the_fingerprint_that_its_operators_see(cluster, copied, tmp_path):
    (tmp_path / "known_hosts").write_text("")
    with pytest.raises(Missing, match=r"127\.0\.0\.1 port \d+: unknown host; its key") as caught:
        SshRunner("login", copied)
    shown = re.search(r"ssh-keygen -lf (/etc/ssh/\S+\.pub)", caught.value.fix)
    # The nodes store only the private host key, so derive its public key.
    line = f"ssh-keygen -yf {shown[1].removesuffix('.pub')} | ssh-keygen -lf -"
    assert as_root(cluster, "sh", "-c", line)[1].split()[1] in caught.value.message
    told = toolkit("probe", "--host", "login", "--ssh-config", str(copied), ok=False)
    assert told.returncode == 3
    assert "unknown host" in told.stderr


def test_the_chosen_mode_runs_as_predicted(cluster, training_sif):
    done = toolkit("doctor", str(training_sif), "--cluster", cluster.name, "--live", "--json")
    told = json.loads(done.stdout)
    (trial,) = told["trials"]
    assert done.returncode == 0
    assert (told["schema"], trial["mode"]) == ("toolkit.live/1", "srun-pmix")
    assert (trial["predicted"], trial["observed"], trial["agrees"]) == ("ok", "ok", True)
    seen = trial["seen"]
    assert seen["sizes"] == [2, 2]
    assert len(set(seen["hosts"])) == 2
    assert seen["sums"] == [True, True]
    assert [m["bytes"] for m in seen["messages"]] == [8, 64, 1024, 16384, 262144, 4194304]
    assert all(m["whole"] and 0 < m["seconds"] < 10 and m["between"] == "nodes" for m in seen["messages"])
    # The only network of the virtual cluster's nodes is Ethernet.
    assert seen["transport"]["name"] == "tcp"
    assert trial["missed_fabric"] is False
    assert seen["program"] == "python"
