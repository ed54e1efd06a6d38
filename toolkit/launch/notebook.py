"""Run Jupyter on a compute node: build the job's command, its files, and the command that forwards a
connection to Jupyter.
"""

import posixpath
import secrets
import time
from collections.abc import Callable

import msgspec

from toolkit.data import package, shipped_folder
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
"""The exit status of ``notebook.py`` if the image has no Jupyter."""

_STARTER, _RELAY, _FAR = "notebook.py", "relay.py", "relay.sh"
_TOKEN, _PLACE = "token", "notebook.json"
"""The names of files in the job's folder; ``notebook.py`` writes ``notebook.json`` when Jupyter listens."""

_SHELL_SECONDS = 60.0
_START_SECONDS = 300.0
"""The time limit for Jupyter's start, in seconds after the job's start. Jupyter starts slowly on a busy file
system.
"""

_POLLS = (1.0, 5.0)
"""The first and the longest pause, in seconds, between two queries of the job's state."""

MODE: Mode = "srun-none"
"""The launch mode of a notebook, which is one task without MPI."""


class NotebookAddress(msgspec.Struct, frozen=True):
    """The node of a notebook, and the port on which Jupyter listens on the node's loopback interface."""

    host: str
    port: int


def command(directory: str, folder: str, packages: str, image: ImageFacts) -> tuple[str, ...]:
    """Return the command that starts Jupyter, with ``python`` in toolkit's own images and ``python3`` in
    other images.

    ``directory`` is the job's folder. ``folder`` is the root folder of Jupyter's file browser. For an image
    without Jupyter, ``packages`` is a folder with Jupyter's Python packages. An empty ``packages`` means that
    the user gave no such folder.
    """
    python = "python3" if image.stack is None else "python"
    words = (python, posixpath.join(directory, _STARTER), directory, folder)
    return (*words, packages) if packages else words


def is_notebook(spec: JobSpec) -> bool:
    """Return whether a job is a notebook."""
    return posixpath.join(spec.directory, _STARTER) in spec.command


def prepare(runner: Runner, spec: JobSpec, runtime: str) -> str:
    """Create the job's folder and files on the host, readable only by the user; return a new token."""
    directory = spec.directory
    make = ("mkdir", "-p", "-m", "700", "--", directory)
    runner.run(Command(make, timeout=_SHELL_SECONDS)).require(f"creating {directory} on {runner.place}")
    token = secrets.token_urlsafe(32)
    for name, content in {**files(spec, runtime), _TOKEN: token.encode()}.items():
        runner.write(posixpath.join(directory, name), content, 0o600)
    return token


def files(spec: JobSpec, runtime: str) -> dict[str, bytes]:
    """Return the contents of the job's files, by name. The token, the only secret, is not included."""
    relay = posixpath.join(spec.directory, _RELAY)
    words = {"relay": relay, "runtime": runtime, "bind": apptainer.bind(spec.directory), "image": spec.image}
    return {
        _STARTER: (shipped_folder("slurm") / _STARTER).read_bytes(),
        _RELAY: (package() / "run" / _RELAY).read_bytes(),
        _FAR: render("slurm", "relay.sh.j2", words).encode(),
    }


def token_of(runner: Runner, record: JobRecord) -> str:
    """Return the token of a running notebook.

    Raises:
        Missing: if toolkit or the user has deleted the token.
    """
    token = runner.read(posixpath.join(record.spec.directory, _TOKEN)).decode("ascii", "replace").strip()
    if not token:
        raise Missing(
            f"{record.key}: the notebook has ended; its token was removed",
            fix="start a new notebook: `toolkit notebook`",
        )
    return token


def wait_until_ready(
    runner: Runner, record: JobRecord, on_state: Callable[[JobStatus], None]
) -> tuple[JobRecord, NotebookAddress | None]:
    """Wait until Jupyter listens, and return the record and Jupyter's address.

    The address is ``None`` if the job ended before Jupyter listened.

    Raises:
        CheckFailed: if the job runs and Jupyter does not listen within five minutes.
        Missing: if Slurm does not answer for ten minutes.
    """
    pause, running_since, last_answer = _POLLS[0], 0.0, time.monotonic()
    while True:
        status = jobs.query(runner, record.id)
        if status.answer == "silent":
            follow.give_up(
                runner,
                time.monotonic() - last_answer,
                f"when Slurm answers again: `toolkit notebook --attach {record.key}`",
            )
        else:
            last_answer = time.monotonic()
        on_state(status)
        record = jobs.write_status(record, status)
        if status.state in FINAL_STATES or status.answer == "forgotten":
            return jobs.conclude(runner, record), None
        content = (
            runner.read(posixpath.join(record.spec.directory, _PLACE)) if status.state == "running" else b""
        )
        if content:
            return record, msgspec.json.decode(content, type=NotebookAddress)
        if status.state == "running":
            running_since = running_since or time.monotonic()
            if time.monotonic() - running_since > _START_SECONDS:
                raise CheckFailed(
                    f"job {record.id} runs, but Jupyter did not start within {_START_SECONDS:.0f} s",
                    fix=f"see why: `toolkit jobs logs {record.key}`; to stop the job: "
                    f"`toolkit jobs cancel {record.key}`",
                )
        else:
            pause = min(pause * 1.5, _POLLS[1])
        time.sleep(_POLLS[0] if status.state == "running" else pause)


def relay_command(record: JobRecord, place: NotebookAddress) -> Command:
    """Return the srun command for a step on the job's node; the step forwards a connection to Jupyter."""
    srun = ("srun", f"--jobid={record.id}", "--overlap", "--nodes=1", "--ntasks=1", "--mpi=none", "--quiet")
    return Command((*srun, "sh", posixpath.join(record.spec.directory, _FAR), str(place.port)))


def address(port: int, token: str) -> str:
    """Return the URL of the notebook for a browser on this machine."""
    return f"http://127.0.0.1:{port}/?token={token}"


def clear(runner: Runner, record: JobRecord) -> None:
    """Delete the token and Jupyter's own files from an ended job's folder."""
    files = [posixpath.join(record.spec.directory, name) for name in (_TOKEN, _PLACE, "jupyter")]
    runner.run(Command(("rm", "-rf", "--", *files), timeout=_SHELL_SECONDS))
