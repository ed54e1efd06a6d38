"""Test that all ranks get a secret value, but no argument list, script or record contains it."""

import hashlib
import shlex
import time
from pathlib import Path

import pytest

from tests.services.jobs import last_record, launched, on_login
from tests.services.program import toolkit
from tests.services.workers import STATE

CANARY = "c4n4ry-$HOME-`x`"
TOLD = 'echo "arrived $(printf %s "$MY_SECRET" | sha256sum | cut -c1-16) $PLAIN"; sleep 20'


def with_text(text):
    """Return the argument lists that contain ``text``, on this machine and in the nodes' containers."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes()
        except OSError:
            continue
        if text in words:
            found.append(words)
    return found


@pytest.mark.parametrize("mode", ["srun-pmix", "mpirun-host", "mpirun-container", "gloo"])
def test_a_secret_arrives_in_every_rank_and_is_seen_nowhere_else(on, cluster, monkeypatch, mode):
    monkeypatch.setenv("MY_SECRET", CANARY)
    words = ("--nodes", "2", "--mode", mode, "--copies", "--force", "--no-preflight", "--no-follow")
    launched(on, *words, "--env", "MY_SECRET", "--env", "PLAIN=pl4in", "--", "sh", "-c", TOLD)
    record = last_record()
    folder, number = record["spec"]["directory"], record["id"]
    deadline = time.monotonic() + 60
    while "arrived" not in on_login(cluster, f"cat {folder}/output.log"):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert with_text(b"variables.sh")
    assert not with_text(b"c4n4ry")
    assert not with_text(b"pl4in")
    shown = f"scontrol show job {number}; scontrol write batch_script {number} -; cat {folder}/job.sh"
    assert "c4n4ry" not in on_login(cluster, shown)
    modes = on_login(
        cluster, shlex.join(["stat", "-c", "%a", f"{folder}/secrets.sh", f"{folder}/variables.sh"])
    )
    assert modes.split() == ["600", "600"]
    toolkit("jobs", "wait", record["key"])
    said = toolkit("jobs", "logs", record["key"]).stdout
    digest = hashlib.sha256(CANARY.encode()).hexdigest()[:16]
    assert said.count(f"arrived {digest} pl4in") == 2, said
    assert on_login(cluster, f"ls {folder}/secrets.sh 2>&1 | grep -c 'No such'").strip() == "1"
    kept = (file for file in (STATE / "toolkit").rglob("*") if file.is_file())
    assert not [file for file in kept if b"c4n4ry" in file.read_bytes()]
