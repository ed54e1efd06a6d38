"""Submit a notebook's job, wait until Jupyter listens, and keep an SSH tunnel to Jupyter open."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolkit.errors import BadInput, CheckFailed, Interrupted, Lost, Missing, ToolkitError
from toolkit.job.places import host_options_of
from toolkit.job.prepare import Prepared
from toolkit.job.running.follow import failure
from toolkit.launch import notebook
from toolkit.launch.tracking import jobs, records, state_text, submission
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.progress import Tell
from toolkit.run.command import Runner
from toolkit.run.patience import PatientRunner
from toolkit.run.stage import stage
from toolkit.run.tunnel import Tunnel

_TRIES = 5
_END_SECONDS = 4
"""The time in seconds for which toolkit asks Slurm whether the job has ended, before it restarts the relay.

The relay is the program on the job's node that forwards connections to Jupyter. If the relay stopped because
the job ended, Slurm usually reports the job's end within this time.
"""


@dataclass(frozen=True, slots=True)
class TunnelSession:
    """The options of a tunnel: its local port, and whether the job keeps running after the tunnel closes."""

    port: int
    keep: bool
    on_open: Callable[[JobRecord, notebook.NotebookAddress, str], None]
    """toolkit calls this function when the tunnel is open.

    The function's arguments are the job, the address of Jupyter on the cluster, and the local URL.
    """


def start_notebook(runner: Runner, job: Prepared, tunnel: Tunnel, session: TunnelSession, tell: Tell) -> None:
    """Submit the job, and keep the tunnel open until Ctrl-C or the end of the job.

    Raises:
        Interrupted: on Ctrl-C. toolkit first cancels the job, except with ``--keep``.
        CheckFailed: if the job ends before Jupyter listens, or Jupyter does not listen in time.
        Missing: if the image has no Jupyter, the host stays unreachable, or the relay fails repeatedly.
    """
    stage(runner, job.parcels, tell)
    token = notebook.prepare(runner, job.record.spec, job.runtime)
    tell.step(f"Submitting to Slurm on {runner.place}")
    record = submission.submit(runner, job.record, job.script, job.secrets)
    _use(runner, record, token, tunnel, session, tell)


@contextlib.contextmanager
def listen(session: TunnelSession) -> Iterator[Tunnel]:
    """Yield a tunnel that listens on the session's local port (``--port``), and close the tunnel at the end.

    Raises:
        BadInput: if another program already listens on the port.
    """
    tunnel = Tunnel(session.port)
    try:
        yield tunnel
    finally:
        tunnel.close()


def attach_to_notebook(job: str, session: TunnelSession, tell: Tell) -> None:
    """Open a tunnel to a running notebook; ``job`` is the job's key or its Slurm job ID.

    Raises:
        BadInput: if the job does not exist, or is not a notebook.
        Missing: if the job has ended, or the host is unreachable.
    """
    record = records.find(job)
    if not notebook.is_notebook(record.spec):
        raise BadInput(
            f"--attach {job}: {record.key} is not a notebook", fix="list the jobs: `toolkit jobs list`"
        )
    runner = host_options_of(record).open()
    try:
        record, _ = jobs.refresh(runner, record)
        if record.state in FINAL_STATES:
            raise Missing(
                f"{record.key} has ended: {record.state}", fix="start a new notebook: `toolkit notebook`"
            )
        with listen(session) as tunnel:
            token = notebook.token_of(runner, record)
            _use(runner, record, token, tunnel, session, tell)
    finally:
        runner.close()


def _use(
    runner: Runner, record: JobRecord, token: str, tunnel: Tunnel, session: TunnelSession, tell: Tell
) -> None:
    """Wait for Jupyter, and keep the tunnel open until the job ends or the user presses Ctrl-C."""

    def lost(reason: str) -> None:
        tell.step(f"{reason}; job {record.id} may still run, and toolkit reconnects")

    patient = PatientRunner(runner, lost)
    try:
        record, place = notebook.wait_until_ready(patient, record, _teller(record, tell))
        if place is None:
            notebook.clear(patient, record)
            raise _ended_early(record)
        url, session_record = notebook.address(tunnel.port, token), record
        record = _forward_until_end(
            patient, record, place, tunnel, lambda: session.on_open(session_record, place, url)
        )
        notebook.clear(patient, record)
    except Lost as error:
        # Replace the hint "run the command again", because `toolkit notebook` would start a second notebook.
        raise Missing(
            f"{runner.place} is unreachable; job {record.id} may still run",
            fix=f"connect again: `toolkit notebook --attach {record.key}`",
            detail=[error.message],
        ) from error
    except KeyboardInterrupt:
        raise _close_notebook(runner, record, session) from None
    tell.step(f"Job {record.id} has ended: {record.state}; the notebook is closed")


def _forward_until_end(
    runner: Runner,
    record: JobRecord,
    place: notebook.NotebookAddress,
    tunnel: Tunnel,
    on_ready: Callable[[], None],
) -> JobRecord:
    """Forward connections to Jupyter until the job ends, and return the job's record.

    If the relay on the job's node stops before the job ends, toolkit restarts the relay.

    Raises:
        Missing: if the relay fails to start five times in a row.
    """
    failed, why = 0, ""
    while failed < _TRIES:
        far = runner.converse(notebook.relay_command(record, place))
        try:
            tunnel.serve(far, on_ready)
            failed, on_ready = 0, _ignore_address
        except CheckFailed as error:
            failed, why = failed + 1, next(iter(error.detail[-1:]), "")
        finally:
            far.close()
        for _ in range(_END_SECONDS):
            record, _ = jobs.refresh(runner, record)
            if record.state in FINAL_STATES:
                return record
            time.sleep(1)
    raise Missing(
        f"toolkit could not open the tunnel to job {record.id} in {_TRIES} tries; the job still runs",
        fix=f"connect again: `toolkit notebook --attach {record.key}`",
        detail=[why] if why else [],
    )


def _ignore_address() -> None:
    """Do nothing: toolkit has already shown the address, and the address does not change."""


def _close_notebook(runner: Runner, record: JobRecord, session: TunnelSession) -> Interrupted:
    """Cancel the job after Ctrl-C, except with ``--keep``, and return the error for the user."""
    if session.keep:
        return Interrupted(
            f"the tunnel is closed; job {record.id} still runs",
            fix=f"connect again: `toolkit notebook --attach {record.key}`   (to cancel the job: "
            f"`toolkit jobs cancel {record.key}`)",
        )
    try:
        record = jobs.cancel(runner, record)
        notebook.clear(runner, record)
    except ToolkitError as error:
        return Interrupted(
            f"the tunnel is closed; job {record.id} may still run: {error.message}",
            fix=f"cancel the job: `toolkit jobs cancel {record.key}`",
        )
    return Interrupted(f"the notebook is closed; job {record.id} is {record.state}")


def _ended_early(record: JobRecord) -> ToolkitError:
    if record.exit_code == notebook.NO_JUPYTER:
        return Missing(
            f"{record.spec.image} does not contain Jupyter",
            fix="use an image with Jupyter, or give `--packages DIR`: a folder on the cluster into which "
            "`pip install --target` installed Jupyter (docs/notebook.md)",
        )
    return failure(record)


def _teller(record: JobRecord, tell: Tell) -> Callable[[JobStatus], None]:
    """Return a function that prints the state of a job each time the state changes."""
    reported: list[str] = []

    def on_state(status: JobStatus) -> None:
        words = state_text.describe_state(status)
        if status.state not in FINAL_STATES and status.answer != "forgotten" and words not in reported[-1:]:
            tell.step(f"Job {record.id} {words}")
        reported.append(words)

    return on_state
