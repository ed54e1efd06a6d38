"""Submit one run of a study as a job, and read its performance figures after the job ends."""

import posixpath
import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from toolkit.errors import BadInput, CheckFailed
from toolkit.job.call import Opener
from toolkit.job.places import HostOptions
from toolkit.job.prepare import prepare
from toolkit.job.request.flags import Flags
from toolkit.job.request.layering import merge_request
from toolkit.job.running.follow import failure
from toolkit.job.running.output import texts
from toolkit.job.running.reach import connect_with_retries
from toolkit.job.sources import check
from toolkit.job.submit import place_of, submit_job
from toolkit.launch.jobscript.script import GPU_FILE
from toolkit.launch.tracking import records
from toolkit.model.hidden import NO_SECRETS, Hidden
from toolkit.model.job import JobRecord
from toolkit.model.metrics import are_whole
from toolkit.model.progress import Tell
from toolkit.model.study import Figures, Origin, Point, Shares, Study
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
from toolkit.run.patience import AWAY_SECONDS, patiently, tell_of_loss
from toolkit.study import collect, folder, study_points, timeline
from toolkit.study.gpuuse import median_use
from toolkit.study.timeline_file import events

_MOST = 64_000_000
"""The largest number of bytes that toolkit copies from the timeline that Horovod writes.

64 MB contain hundreds of training steps of a large model, or thousands of steps of a small model.
"""

_FETCH_SECONDS = 600.0


def check_run(study: Study, point: Point, flags: Flags) -> None:
    """Check the options and the files of a run, without a connection to the cluster.

    Raises:
        BadInput: if an option or a file is wrong.
        Missing: if the image or the data is missing.
    """
    check(merge_request(*study_points.job_fields(study, point)), flags)


def submit(
    study_folder: Path,
    study: Study,
    point: Point,
    opener: Opener,
    tell: Tell,
    *,
    flags: Flags,
    host_reached: bool,
    secrets: Mapping[str, Hidden] = NO_SECRETS,
) -> Point:
    """Submit a run of a study as a job, and return the run with its new state.

    The state is ``failed`` if a check of the job fails or Slurm refuses the job. ``opener`` connects to the
    host.

    ``host_reached`` is true if toolkit reached the host for an earlier run of the study. In this case, the
    host's name is right, so toolkit retries if the host is unreachable. Otherwise, the host's name may be
    wrong, so toolkit does not retry.

    Raises:
        BadInput: if an option is wrong, or the image has changed since earlier runs.
        Missing: if the image or the data does not exist, or the host is unreachable.
    """
    fields, words = study_points.job_fields(study, point)
    fields["env"] = {**secrets, **fields.get("env", {})}
    config = Path(study.ssh_config) if study.ssh_config else None
    request = merge_request(fields, words)
    place = place_of(HostOptions(study.host, study.cluster, config), request)
    sources = check(request, flags)
    runner = patiently(lambda: opener(*place), tell_of_loss(tell), AWAY_SECONDS if host_reached else 0)
    point = msgspec.structs.replace(point, state="planned", tries=point.tries + 1, why="", job=None)
    try:
        job = prepare(runner, request, flags, sources, tell, remote=place.remote)
        _check_image(study_folder, study, point, job.record)
        # Save the key of the job before toolkit runs sbatch.
        # If a signal kills toolkit before sbatch replies, the next `toolkit scale` finds the job by its key.
        point = msgspec.structs.replace(point, state="submitted", job=job.record.key)
        folder.save_point(study_folder, point)
        submit_job(job, place, runner, tell)
    except CheckFailed as error:
        point = msgspec.structs.replace(point, state="failed", why=error.message)
        folder.save_point(study_folder, point)
    finally:
        runner.close()
    return point


def _check_image(study_folder: Path, study: Study, point: Point, record: JobRecord) -> None:
    """Check that the new job ``record`` uses the same image as the measured runs of the same series.

    A series contains the runs with one value of the field that the study compares. Performance figures of
    different images are not comparable.

    Raises:
        BadInput: if a measured run used another image.
    """
    for earlier in folder.load_points(study_folder, study):
        origin = earlier.origin
        if earlier.state != "measured" or earlier.series != point.series or origin is None:
            continue
        if origin.image_digest and record.image_digest and origin.image_digest != record.image_digest:
            raise BadInput(
                f"{origin.image} has changed since the earlier runs in {study_folder}: "
                f"{origin.image_digest[:19]} before, {record.image_digest[:19]} now",
                fix="to measure the new image, name another folder for the study: `--study DIR`",
            )


def job_of(point: Point) -> JobRecord | None:
    """Return the record of a run's job. Return ``None`` if toolkit has not submitted the run, has already
    saved the run's result, or cannot find the record.
    """
    try:
        return records.find(point.job) if point.job and point.state == "submitted" else None
    except BadInput:
        return None


def settle(study_folder: Path, study: Study, point: Point, record: JobRecord, tell: Tell) -> Point:
    """Save the performance figures of an ended job, or the cause of its failure, and return the updated run.

    toolkit writes the figures or the cause to the file of this run in ``study_folder``.

    Raises:
        Missing: if the host with the figures stays unreachable; the run is then unchanged.
    """
    origin = Origin(
        job=record.key,
        job_id=record.id,
        place=record.place,
        nodes=record.nodes,
        mode=record.mode,
        launcher=shlex.join(record.plan.launcher),
        image=posixpath.basename(record.spec.image),
        image_digest=record.image_digest,
    )
    try:
        if record.state != "completed":
            raise failure(record)
        figures = _with_gpu_use(_figures(study, record, tell), record, tell)
        shares = _shares(study_folder, point, record, tell) if point.profile else None
        changes = {"state": "measured", "figures": figures, "shares": shares, "why": ""}
    except (CheckFailed, BadInput) as error:
        causes = [line for line in error.detail if line.startswith("cause: ")]
        changes = {"state": "failed", "why": "; ".join([error.message, *causes[:1]])}
    point = msgspec.structs.replace(point, origin=origin, **changes)
    folder.save_point(study_folder, point)
    return point


def _figures(study: Study, record: JobRecord, tell: Tell) -> Figures:
    if study.pattern:
        output = texts(record, tell, lambda job: connect_with_retries(job, tell))
        return collect.of_output(output, study.pattern, study.warm_up)
    remote_file = posixpath.join(record.spec.directory, records.METRICS)
    metrics = _metrics(record, remote_file, tell)
    return collect.of_metrics(metrics, study.warm_up, record.spec.ranks)


def _with_gpu_use(figures: Figures, record: JobRecord, tell: Tell) -> Figures:
    if not record.spec.gpus_per_node:
        return figures
    with connect_with_retries(record, tell) as runner:
        content = runner.read(posixpath.join(record.spec.directory, GPU_FILE), limit=records.METRICS_MOST)
    return msgspec.structs.replace(figures, gpu=median_use(content))


def _metrics(record: JobRecord, remote_file: str, tell: Tell) -> bytes:
    """Return the metrics of a job: the copy on this machine, or the file on the job's host if the copy is
    incomplete.
    """
    copy = LocalRunner().read(str(records.folder(record.key) / records.METRICS), limit=records.METRICS_MOST)
    if are_whole(copy):
        return copy
    with connect_with_retries(record, tell) as runner:
        content = runner.read(remote_file, limit=records.METRICS_MOST)
    if content:
        records.keep(record, records.METRICS, content)
    return content or copy


def _shares(study_folder: Path, point: Point, record: JobRecord, tell: Tell) -> Shares:
    """Copy the timeline to the study's folder, and return the fraction of a training step's time that each
    phase of Horovod takes.
    """
    remote_file = posixpath.join(record.spec.directory, study_points.TIMELINE)
    with connect_with_retries(record, tell) as runner:
        read = Command.of("head", "-c", str(_MOST), remote_file, timeout=_FETCH_SECONDS)
        content = runner.run(read).require(f"{runner.place}: reading the timeline {remote_file}").stdout
    file = folder.save_timeline(study_folder, point, content)
    shares = timeline.shares(timeline.tally_events(events(file)))
    if shares is None:
        raise CheckFailed(
            f"{file}: the timeline has fewer than three training steps; toolkit needs at least three"
        )
    return shares
