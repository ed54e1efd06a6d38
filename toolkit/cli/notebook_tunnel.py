"""Submit a notebook's job, wait until Jupyter listens, and keep the tunnel to it open."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolkit.cli.frame.say import say, say_json
from toolkit.errors import BadInput, CheckFailed, Interrupted, Lost, Missing, ToolkitError
from toolkit.job.places import where_of
from toolkit.job.prepare import Prepared
from toolkit.job.running.follow import failure
from toolkit.launch import notebook
from toolkit.launch.tracking import jobs, records, states, submission
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.progress import Tell
from toolkit.run.command import Runner
from toolkit.run.patience import Patient
from toolkit.run.stage import stage
from toolkit.run.tunnel import Tunnel

SCHEMA = "toolkit.notebook/1"

_TRIES = 5
_END_SECONDS = 4
"""A job ends its steps first: Slurm may say for a while that it runs."""


@dataclass(frozen=True, slots=True)
class TunnelSession:
    """How the tunnel is opened here; ``keep`` leaves the job when it is closed."""

    port: int
    keep: bool
    as_json: bool


def started(runner: Runner, job: Prepared, session: TunnelSession, tell: Tell) -> None:
    """Submit the job and serve it until Ctrl-C or its end.

    Raises:
        Interrupted: on Ctrl-C, after the job was ended, unless it is kept.
        CheckFailed: if the job ends before Jupyter listens.
        Missing: if the image has no Jupyter.
    """
    with _listening(session) as tunnel:
        stage(runner, job.parcels, tell)
        token = notebook.prepare(runner, job.record.spec, job.runtime)
        tell.step(f"Submitting to Slurm on {runner.place}")
        record = submission.submit(runner, job.record, job.script, job.secrets)
        _use(runner, record, token, tunnel, session, tell)


def attached(wanted: str, session: TunnelSession, tell: Tell) -> None:
    """Open the tunnel to a notebook that was started before; ``wanted`` is its key or Slurm's number.

    Raises:
        BadInput: if there is no such job, or it is no notebook.
        Missing: if it has ended.
    """
    record = records.find(wanted)
    if not notebook.is_notebook(record.spec):
        raise BadInput(f"--attach {wanted}: {record.key} is no notebook", fix="toolkit jobs list")
    runner = where_of(record).opened()
    try:
        record, _ = jobs.refresh(runner, record)
        if record.state in FINAL_STATES:
            raise Missing(f"{record.key} has ended: {record.state}", fix="toolkit notebook")
        with _listening(session) as tunnel:
            token = notebook.token_of(runner, record)
            _use(runner, record, token, tunnel, session, tell)
    finally:
        runner.close()


def _use(
    runner: Runner, record: JobRecord, token: str, tunnel: Tunnel, session: TunnelSession, tell: Tell
) -> None:
    """See a notebook to its end, or to the end of the person's patience."""

    def lost(why: str) -> None:
        tell.step(f"{why}; job {record.id} goes on, and is looked for again")

    patient = Patient(runner, lost)
    try:
        record, place = notebook.wait_until_ready(patient, record, _teller(record, tell))
        if place is None:
            notebook.clear(patient, record)
            raise _ended_early(record)
        url, found = notebook.address(tunnel.port, token), record
        record = _carried(patient, record, place, tunnel, lambda: _show(found, place, url, session, tell))
        notebook.clear(patient, record)
    except Lost as error:
        # "Run it again", which a lost connection is told with, would start a second notebook.
        raise Missing(
            f"job {record.id} goes on, but {runner.place} is not reached any more",
            fix=f"toolkit notebook --attach {record.key}",
            detail=[error.message],
        ) from error
    except KeyboardInterrupt:
        raise _closed(runner, record, session) from None
    tell.step(f"Job {record.id} has ended: {record.state}; the notebook is closed")


def _carried(
    runner: Runner,
    record: JobRecord,
    place: notebook.NotebookAddress,
    tunnel: Tunnel,
    on_ready: Callable[[], None],
) -> JobRecord:
    """Carry connections until the job has ended; a far end that is lost before is started again.

    Raises:
        Missing: if it does not come back.
    """
    failed, why = 0, ""
    while failed < _TRIES:
        far = runner.converse(notebook.relay_command(record, place))
        try:
            tunnel.serve(far, on_ready)
            failed, on_ready = 0, _nothing
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
        f"the tunnel to job {record.id} broke; the job goes on",
        fix=f"toolkit notebook --attach {record.key}",
        detail=[why] if why else [],
    )


def _nothing() -> None:
    """Say nothing: the address was told, and it stays."""


def _show(
    record: JobRecord, place: notebook.NotebookAddress, url: str, session: TunnelSession, tell: Tell
) -> None:
    if session.as_json:
        told = {"schema": SCHEMA, "url": url, "job": record.id, "key": record.key, "host": place.host}
        say_json(told)
        return
    end = "closes the tunnel; the job goes on" if session.keep else "closes the tunnel and ends the job"
    tell.step(f"Jupyter runs on {place.host}; Ctrl-C {end}")
    say(url)


def _closed(runner: Runner, record: JobRecord, session: TunnelSession) -> Interrupted:
    """End what a person has ended, and say what is left of it."""
    if session.keep:
        return Interrupted(
            f"the tunnel is closed; job {record.id} goes on",
            fix=f"toolkit notebook --attach {record.key}   (to end it: toolkit jobs cancel {record.key})",
        )
    try:
        record = jobs.cancel(runner, record)
        notebook.clear(runner, record)
    except ToolkitError as error:
        return Interrupted(
            f"the tunnel is closed; job {record.id} may go on: {error.message}",
            fix=f"toolkit jobs cancel {record.key}",
        )
    return Interrupted(f"the notebook is closed, and job {record.id} is {record.state}")


def _ended_early(record: JobRecord) -> ToolkitError:
    if record.exit_code == notebook.NO_JUPYTER:
        return Missing(
            f"there is no Jupyter in {record.spec.image}",
            fix="give a folder on the cluster that pip install --target has filled: --packages DIR "
            "(docs/notebook.md), or an image whose recipe has it",
        )
    return failure(record)


def _teller(record: JobRecord, tell: Tell) -> Callable[[JobStatus], None]:
    """Return what says how a job waits, each time that there is news."""
    said: list[str] = []

    def on_state(status: JobStatus) -> None:
        words = states.in_words(status)
        if status.state not in FINAL_STATES and status.answer != "forgotten" and words not in said[-1:]:
            tell.step(f"Job {record.id} {words}")
        said.append(words)

    return on_state


@contextlib.contextmanager
def _listening(session: TunnelSession) -> Iterator[Tunnel]:
    """Listen before anything is begun, as the port may be taken."""
    tunnel = Tunnel(session.port)
    try:
        yield tunnel
    finally:
        tunnel.close()
