"""Prepare a launch: write a job record and a job script from the request, the host and the image."""

import datetime as dt
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from toolkit.engine.predict import predict
from toolkit.errors import Lost, ProgramFault, ToolkitError
from toolkit.job.program_check import check_program
from toolkit.job.project.checks import refuse
from toolkit.job.project.code import (
    copy_project,
    project_parcels,
    with_project,
    with_start_folder,
)
from toolkit.job.project.desk_paths import check_desk_paths
from toolkit.job.project.sweep_checks import tell_sweep
from toolkit.job.rank_view import read_command_here
from toolkit.job.request.envfile import (
    request_with_env,
    with_env_file,
)
from toolkit.job.request.flags import Flags, tell_fix
from toolkit.job.request.gate import ImageClearance
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.traineroptions import trainer_faults
from toolkit.job.sources import Sources
from toolkit.job.staging import data_parcels, program_parcels
from toolkit.job.target import Target, copies_of, target_of
from toolkit.launch import loaded
from toolkit.launch.jobscript import broadcast, choose, script
from toolkit.launch.jobscript.choose import ModeChoice
from toolkit.launch.jobscript.preflight import has_check
from toolkit.launch.request import trainers
from toolkit.launch.request.copies import in_own_folders
from toolkit.launch.request.gpus import may_have_gpus, tell_idle
from toolkit.launch.request.specify import JobPaths, name_of, request_of, specify
from toolkit.launch.sites.queue import array_faults, queue_faults
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.fix import Fix
from toolkit.model.hidden import Hidden, secrets_among, without_secrets
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.prediction import Request
from toolkit.model.progress import Tell
from toolkit.probe.remembered import HostMemory, forget
from toolkit.run.command import Runner
from toolkit.run.local import LocalRunner
from toolkit.run.stage import Parcel


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that is ready: toolkit only has to copy its files, and submit or run its script."""

    record: JobRecord
    script: str
    parcels: tuple[Parcel, ...]
    runtime: str
    secrets: Mapping[str, Hidden] = field(default_factory=dict)


def prepare(
    runner: Runner,
    request: JobRequest,
    flags: Flags,
    sources: Sources,
    tell: Tell,
    *,
    remote: bool,
    for_submission: bool = True,
) -> Prepared:
    """Return a job that is ready to submit; this function writes nothing on the host.

    If toolkit would refuse the job because of cached facts about the host, it first probes the host again.

    Args:
        runner: runs commands on the host.
        request: the job that the user requests.
        flags: the options that are not job fields.
        sources: the files on this machine that the launch needs.
        tell: the listener for progress messages.
        remote: whether the host is another machine.
        for_submission: true if the caller submits the job; false if the caller only shows the script.
    """
    memory, compare = HostMemory(), for_submission and remote
    try:
        return _prepare(runner, request, flags, sources, tell, memory, remote=remote, copy_check=compare)
    except ToolkitError as error:
        if memory.age is None or isinstance(error, Lost | ProgramFault):
            raise
        forget()
    return _prepare(runner, request, flags, sources, tell, HostMemory(), remote=remote, copy_check=compare)


def _prepare(
    runner: Runner,
    request: JobRequest,
    flags: Flags,
    sources: Sources,
    tell: Tell,
    memory: HostMemory,
    *,
    remote: bool,
    copy_check: bool,
) -> Prepared:
    job, site = request.job, request.site
    target = target_of(
        runner, request, flags, sources.image, tell, remote=remote, copy_check=copy_check, memory=memory
    )
    image = target.image.facts
    gpus = may_have_gpus(job, site, target.host)
    sources, job = check_program(sources, request, flags, target.image, tell, gpus=gpus)
    job = trainers.with_strategy(job, image)
    checked = has_check(image, trainer=bool(job.trainer), user_site=bool(job.user_site))
    if job.preflight and not checked:
        tell.step("The preflight check is skipped, because the program's MPI is unknown or missing")
    folder, data = data_parcels(target.runner, request, sources.data, target.base, remote=remote)
    program = program_parcels(sources.program, target.base)
    if remote:
        check_desk_paths(sources.code, flags, target.runner)
    project = copy_project(sources.code, flags, target.base, tell) if remote else None
    tell_sweep(job, sources.code, tell, project_copied=project is not None)
    trainer = program[0].target if program else ""
    places = JobPaths(target.run(name_of(job)), target.image_path, folder, trainer)
    places = with_env_file(with_start_folder(places, sources.code, job, project, remote=remote), target.env)
    spec = specify(with_project(job, project), places)
    spec = msgspec.structs.replace(
        spec,
        preflight=bool(job.preflight) and checked,
        project=project.parcel.target if project else "",
        unsure=sources.code is not None and sources.code.facts.serial is None and not flags.copies,
    )
    spec = in_own_folders(spec) if flags.copies else spec
    check_queue(target, spec, request, flags, tell)
    refuse([*trainer_faults(spec, image, LocalRunner())] if job.trainer else [], flags, tell)
    query = request_of(spec, job.env or {}, job.mode, site, job.program, read_command_here(job.command or ()))
    query = request_with_env(query, spec, target.env)
    choice = _chosen(request, flags, sources.fix, target.host, image, query, tell)
    tell_idle(target.image.name, spec, site, target.host, image, tell)
    notes = request.notes(explain=flags.explain)
    prepared = with_script(target, request, spec, choice, choice.because, notes)
    record = msgspec.structs.replace(prepared.record, fix=sources.fix.launch if sources.fix else None)
    return replace(
        prepared, record=record, parcels=(*program, *project_parcels(project), *target.parcels, *data)
    )


def check_queue(target: Target, spec: JobSpec, request: JobRequest, flags: Flags, tell: Tell) -> None:
    """Raise an error if Slurm would refuse the job because of its partition, account or array.

    If the site profile lists partitions, toolkit checks only against these partitions, and ignores the
    partitions that Slurm reports.

    Raises:
        CheckFailed: if Slurm would refuse the job, and the user does not give ``--force``. The error
            describes all faults.
    """
    if request.site and request.site.scheduler != "slurm":
        return
    facts = target.cluster
    if request.site and request.site.partitions:
        facts = msgspec.structs.replace(facts, partitions=None)
    settings = target.host.slurm.settings if target.host.slurm else {}
    refuse([*array_faults(spec, settings), *queue_faults(spec, facts)], flags, tell)


def with_script(
    target: Target,
    request: JobRequest,
    spec: JobSpec,
    choice: ModeChoice,
    reason: str,
    notes: Sequence[str] = (),
) -> Prepared:
    """Return the prepared job with its script.

    ``reason`` (the reason for the launch mode) and ``notes`` become comments in the script.
    """
    site = request.site
    runtime = loaded.command_of(target.host, site, spec.runtime)
    spread, why = broadcast.decide_broadcast(spec, site, runtime)
    left = spec.broadcast if spec.broadcast == "on" else ""
    spec = msgspec.structs.replace(spec, broadcast="on" if spread else left)
    lines = (
        target.clearance.note,
        *target.assumptions,
        *notes,
        *([f"the image is copied to each node: {why}"] if spread else []),
    )
    copies = copies_of(target) if spread else {}
    text = script.job_script(spec, choice.plan, reason, runtime, site, target.image.facts, lines, copies)
    record = make_record(target.runner.place, spec, choice, target.clearance, target.env.digest)
    return Prepared(record, text, target.parcels, runtime, secrets_among(request.job.env or {}))


def make_record(
    place: str, spec: JobSpec, choice: ModeChoice, clearance: ImageClearance, env_digest: str = ""
) -> JobRecord:
    """Return the record of a job before its submission. The record contains no secret values.

    ``clearance`` is the result of the image's signature check. ``env_digest`` is the digest of the
    ``--env-image`` file. It is empty without this option.
    """
    recorded_plan = msgspec.structs.replace(choice.plan, env=without_secrets(choice.plan.env))
    return JobRecord(
        key=posixpath.basename(spec.directory),
        id="",
        place=place,
        spec=spec,
        mode=recorded_plan.mode,
        plan=recorded_plan,
        predicted=choice.prediction.outcome,
        forced=choice.forced,
        image_digest=clearance.digest,
        env_digest=env_digest,
        image_check=clearance.check,
        submitted=dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
    )


def _chosen(
    job_request: JobRequest,
    flags: Flags,
    fix: Fix | None,
    host: HostFacts,
    facts: ImageFacts,
    request: Request,
    tell: Tell,
) -> ModeChoice:
    """Return the launch in the mode that the file of ``--fix`` or the user names. If neither names a mode,
    use the mode that the engine chooses. If the engine chooses no mode, use the mode in the site profile.
    """
    mode = request.mode
    if fix:
        tell_fix(flags, fix, facts, tell)
        mode = fix.launch.mode
    verdict = predict(host, facts, request, job_request.site, fix.launch if fix else None)
    if mode is None and verdict.chosen is None and job_request.site:
        mode = job_request.site.launch.mode
    return choose.choose(verdict, mode, force=flags.force, alternatives=trainers.other_modes(job_request.job))
