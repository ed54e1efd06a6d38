"""Test a complete job script that copies its image to the node, also if the copy fails."""

import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from tests.unit.launch.examples import SPEC, SRUN
from tests.unit.tables import every_row
from toolkit.launch.jobscript.script import job_script
from toolkit.model.site import Site
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

CONTENT = os.urandom(5000)
SHA = hashlib.sha256(CONTENT).hexdigest()
RUNS = '#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nexec "$@"\n'
"""A fake ``srun`` or ``timeout``: it skips the options and runs the command."""
HALF = '#!/bin/bash\nshift\nhead -c 100 "$1" > "$2"\nexit {}\n'
"""A fake ``cp``: it writes the first 100 bytes and exits with the given status."""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Return a function that runs a job that copies its image.

    ``given`` adds or replaces programs of the node. The function returns the container runtime's arguments,
    the files left on the node, and the output.
    """
    shared, node, programs = tmp_path / "shared.sif", tmp_path / "node", tmp_path / "bin"
    shared.write_bytes(CONTENT)
    programs.mkdir()
    node.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_NTASKS", "1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node1")

    def run(**given: str):
        log = tmp_path / "started"
        log.unlink(missing_ok=True)
        runtime = f'#!/bin/sh\nprintf "%s\\n" "$@" >> {log}\n'
        for name, text in {"srun": RUNS, "apptainer": runtime, **given}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        spec = msgspec.structs.replace(
            SPEC, nodes=1, image=str(shared), directory=str(tmp_path / "run"), broadcast="on", preflight=False
        )
        site = Site(schema="toolkit.site/1", title="x", scratch=str(node))
        copies = {str(shared): (f"sha256:{SHA}", len(CONTENT))}
        text = job_script(spec, SRUN, "x", "apptainer", site, None, (), copies)
        done = LocalRunner().run(Command(("bash",), stdin=text.encode()))
        (folder,) = node.glob("toolkit-*")
        kept = sorted(path.name for path in folder.iterdir() if path.name != ".lock")
        return Path(log).read_text().split("\n"), kept, done.text + done.errors

    run.shared = str(shared)
    run.times = (tmp_path / "run" / "start-times").read_text
    return run


def test_ranks_start_from_the_copy(job):
    started, kept, said = job()
    assert any(word.endswith(f"/{SHA}") for word in started)
    assert job.shared not in started
    assert kept == [SHA]
    assert "each node has a local copy of the image" in said
    names = [line.split()[0] for line in job.times().splitlines()]
    assert names == ["script", "copy", "copied", "ranks", "output"]


@every_row(
    ("cp", "why"),
    [
        (HALF.format(1), ""),
        (HALF.format(0), "is not the file that was sent"),
        ("#!/bin/sh\nexit 1\n", ""),
    ],
)
def test_after_a_copy_that_failed_ranks_start_from_the_shared_file_and_nothing_stays(job, cp, why):
    started, kept, said = job(cp=cp)
    assert job.shared in started
    assert kept == []
    assert why in said
    assert "the image was not copied to the nodes; ranks read the shared file" in said


def test_a_broken_sbcast_leaves_the_copy_to_cp(job):
    sbcast = f'#!/bin/bash\necho "sbcast: error: disk full" >&2\nhead -c 9 {job.shared} > "$3"\nexit 1\n'
    started, kept, _ = job(sbcast=sbcast)
    assert any(word.endswith(f"/{SHA}") for word in started)
    assert kept == [SHA]


def test_the_copy_of_an_earlier_job_is_used_without_sending_it_again(job):
    job()
    started, kept, _ = job(cp="#!/bin/sh\nexit 1\n")
    assert any(word.endswith(f"/{SHA}") for word in started)
    assert kept == [SHA]
