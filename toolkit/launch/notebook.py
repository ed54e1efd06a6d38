"""Jupyter on a compute node: what the job runs, what its folder holds, and the way to it."""

import posixpath
import secrets
import time
from collections.abc import Callable

import msgspec

from toolkit.data import package, shipped
from toolkit.errors import CheckFailed, Missing
from toolkit.launch.tracking import follow, jobs
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.facts import ImageFacts
from toolkit.model.job import FINAL_STATES, JobRecord, JobSpec
from toolkit.model.prediction import Mode
from toolkit.render import render
from toolkit.run.command import Command, Runner
from toolkit.runtime import apptainer

NAME = "notebook"
NO_JUPYTER = 3
"""The exit code of the starter where it finds no Jupyter."""

_STARTER, _RELAY, _FAR = "notebook.py", "relay.py", "relay.sh"
_TOKEN, _PLACE = "token", "notebook.json"
"""Files of the job's folder; the starter writes the last one."""

_SHELL_SECONDS = 60.0
_START_SECONDS = 300.0
"""How long Jupyter may take from the start of the job: an image on a busy file system is read slowly."""

_POLLS = (1.0, 5.0)
"""Seconds between two questions, at first and later."""

MODE: Mode = "srun-none"
"""One task, which speaks no MPI."""


class NotebookAddress(msgspec.Struct, frozen=True):
    """Where a notebook listens, on that host's loopback."""

    host: str
    port: int


def command(directory: str, folder: str, packages: str, image: ImageFacts) -> tuple[str, ...]:
    """Return what runs inside the image; an image of ours has its Python under another name than others."""
    python = "python3" if image.stack is None else "python"
    words = (python, posixpath.join(directory, _STARTER), directory, folder)
    return (*words, packages) if packages else words


def is_notebook(spec: JobSpec) -> bool:
    """Tell whether a job is one of these."""
    return posixpath.join(spec.directory, _STARTER) in spec.command


def prepare(runner: Runner, spec: JobSpec, runtime: str) -> str:
    """Make the job's folder, its owner's alone, with what the job needs; return the token, made anew."""
    directory = spec.directory
    make = ("mkdir", "-p", "-m", "700", "--", directory)
    runner.run(Command(make, timeout=_SHELL_SECONDS)).require(f"making {directory} on {runner.place}")
    token = secrets.token_urlsafe(32)
    for name, content in {**files(spec, runtime), _TOKEN: token.encode()}.items():
        runner.write(posixpath.join(directory, name), content, 0o600)
    return token


def files(spec: JobSpec, runtime: str) -> dict[str, bytes]:
    """Return what the job's folder holds beside the script, by name; nothing of it is secret."""
    relay = posixpath.join(spec.directory, _RELAY)
    words = {"relay": relay, "runtime": runtime, "bind": apptainer.bind(spec.directory), "image": spec.image}
    return {
        _STARTER: (shipped("slurm") / _STARTER).read_bytes(),
        _RELAY: (package() / "run" / _RELAY).read_bytes(),
        _FAR: render("slurm", "relay.sh.j2", words).encode(),
    }


def token_of(runner: Runner, record: JobRecord) -> str:
    """Return the token of a notebook that was started earlier.

    Raises:
        Missing: if it is not there any more.
    """
    token = runner.read(posixpath.join(record.spec.directory, _TOKEN)).decode("ascii", "replace").strip()
    if not token:
        raise Missing(f"{record.key} has no token any more; it has ended", fix="toolkit notebook")
    return token


def wait_until_ready(
    runner: Runner, record: JobRecord, on_state: Callable[[JobStatus], None]
) -> tuple[JobRecord, NotebookAddress | None]:
    """Wait until Jupyter listens; return where, or nothing where the job has ended before.

    Raises:
        CheckFailed: if it runs and does not listen.
        Missing: if Slurm does not answer for minutes.
    """
    pause, running_since, heard = _POLLS[0], 0.0, time.monotonic()
    while True:
        status = jobs.query(runner, record.id)
        if status.answer == "silent":
            follow.give_up(
                runner, time.monotonic() - heard, f"once it does: toolkit notebook --attach {record.key}"
            )
        else:
            heard = time.monotonic()
        on_state(status)
        record = jobs.noted(record, status)
        if status.state in FINAL_STATES or status.answer == "forgotten":
            return jobs.conclude(runner, record), None
        told = (
            runner.read(posixpath.join(record.spec.directory, _PLACE)) if status.state == "running" else b""
        )
        if told:
            return record, msgspec.json.decode(told, type=NotebookAddress)
        if status.state == "running":
            running_since = running_since or time.monotonic()
            if time.monotonic() - running_since > _START_SECONDS:
                raise CheckFailed(
                    f"job {record.id} runs, but Jupyter did not listen within {_START_SECONDS:.0f} s",
                    fix=f"toolkit jobs logs {record.key}; toolkit jobs cancel {record.key}",
                )
        else:
            pause = min(pause * 1.5, _POLLS[1])
        time.sleep(_POLLS[0] if status.state == "running" else pause)


def relay_command(record: JobRecord, place: NotebookAddress) -> Command:
    """Return what starts the tunnel's far end on the job's node, as one more step of the job."""
    srun = ("srun", f"--jobid={record.id}", "--overlap", "--nodes=1", "--ntasks=1", "--mpi=none", "--quiet")
    return Command((*srun, "sh", posixpath.join(record.spec.directory, _FAR), str(place.port)))


def address(port: int, token: str) -> str:
    """Return what a browser of this machine is given."""
    return f"http://127.0.0.1:{port}/?token={token}"


def clear(runner: Runner, record: JobRecord) -> None:
    """Remove the token and what Jupyter wrote for itself; for a job that has ended."""
    there = [posixpath.join(record.spec.directory, name) for name in (_TOKEN, _PLACE, "jupyter")]
    runner.run(Command(("rm", "-rf", "--", *there), timeout=_SHELL_SECONDS))
