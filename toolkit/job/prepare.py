"""Prepare a launch: turn the request, the facts and the prediction into a record and a job script."""

import datetime as dt
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from toolkit.engine.predict import predict
from toolkit.job.meanwhile import Meanwhile
from toolkit.job.project.checks import findings, refuse, with_python
from toolkit.job.project.code import (
    Code,
    code_of,
    copy_project,
    project_parcels,
    with_project,
    with_start_folder,
)
from toolkit.job.project.desk_paths import check_desk_paths
from toolkit.job.project.plain import OF_SCRIPT
from toolkit.job.project.ranks import check_ranks
from toolkit.job.project.sweep_checks import check_sweep, tell_sweep
from toolkit.job.rank_view import read_command_here, view_of_job
from toolkit.job.request.envfile import (
    NO_ENV,
    MountedEnv,
    check_runtime,
    clear_env,
    env_file,
    read_offer,
    request_with_env,
    with_env_file,
)
from toolkit.job.request.flags import Flags, check_words, tell_fix
from toolkit.job.request.gate import Cleared, clear, demand_of
from toolkit.job.request.inputs import (
    OnCluster,
    StartableImage,
    data_of,
    find_startable,
    image_of,
    inspect_input,
)
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.locations import directory, image_there, program_file
from toolkit.job.request.traineroptions import trainer_faults
from toolkit.job.staging import data_parcels, program_parcels
from toolkit.launch import loaded
from toolkit.launch.jobscript import broadcast, choose, script
from toolkit.launch.jobscript.choose import ModeChoice
from toolkit.launch.jobscript.preflight import has_check
from toolkit.launch.request import trainers
from toolkit.launch.request.copies import in_own_folders
from toolkit.launch.request.gpus import may_have_gpus, tell_idle
from toolkit.launch.request.specify import JobPaths, name_of, request_of, specify
from toolkit.launch.sites.queue import array_faults, queue_faults
from toolkit.launch.tracking import records
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.fix import Fix
from toolkit.model.hidden import Hidden, secrets_among, without_secrets
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Request
from toolkit.model.progress import Tell
from toolkit.model.sitefacts import SiteFacts
from toolkit.probe.asking import of_job
from toolkit.probe.probe import gather
from toolkit.run.command import Runner
from toolkit.run.local import LocalRunner
from toolkit.run.patience import AWAY_SECONDS, Patient, tell_of_loss
from toolkit.run.stage import Parcel


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of this machine that a launch needs: the image, and the data of a trainer."""

    image: Path | OnCluster
    data: Path | OnCluster | None
    fix: Fix | None = None
    program: Path | None = None
    """The file of the user's own trainer."""
    code: Code | None = None
    """The program of a command."""
    env: Path | None = None
    """The file of ``--env-image``."""


@dataclass(frozen=True, slots=True)
class Target:
    """A probed host, and an image that may start on it.

    ``base`` is the host's folder for images, data and runs. ``there`` is the path of the image on the host.
    ``copied`` are the files to copy. ``assumed`` are sentences about assumed facts of the host. ``cluster``
    has the partitions, and the accounts of the user if the job names one.
    """

    runner: Runner
    image: StartableImage
    cleared: Cleared
    host: HostFacts
    base: str
    there: str
    copied: tuple[Parcel, ...]
    assumed: tuple[str, ...]
    cluster: SiteFacts
    env: MountedEnv = NO_ENV

    def run(self, name: str) -> str:
        """Return the folder of a new run."""
        return posixpath.join(self.base, "runs", records.new_key(name))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that only needs its files copied and its script submitted."""

    record: JobRecord
    script: str
    parcels: tuple[Parcel, ...]
    runtime: str
    secrets: Mapping[str, Hidden] = field(default_factory=dict)


def check(asked: JobRequest, flags: Flags) -> Sources:
    """Check everything that needs neither a large file nor a connection.

    Raises:
        BadInput: if an option is wrong.
        Missing: if the image or the data set is not on this machine.
    """
    job = asked.job
    fix = check_words(asked, flags)
    known = trainers.find(job.trainer) if job.trainer else None
    dataset = known.dataset if known else ""
    folder = data_of(job.data, dataset, asked.site) if dataset or job.data else None
    program = program_file(job.trainer or "") if known and known.own else None
    code = code_of(job, flags)
    check_ranks(job, code, flags)
    check_sweep(job, code, flags)
    env = env_file(job.env_image)
    return Sources(image_of(job.image or "", asked.site), folder, fix, program, code, env)


def target_of(
    runner: Runner, asked: JobRequest, flags: Flags, image: Path | OnCluster, tell: Tell, *, remote: bool
) -> Target:
    """Read the image, check its signatures, and probe the host.

    toolkit changes nothing on the host, so it retries a broken connection. ``remote`` says whether toolkit
    has to copy files to the host.
    """
    job, runner = asked.job, Patient(runner, tell_of_loss(tell), AWAY_SECONDS)
    tell.step(f"Reading {image.name} and probing {runner.place}")
    choice = of_job(job.partition, accounts=bool(job.account or job.qos))
    probing = Meanwhile(lambda: gather(runner, choice))
    command = job.runtime or (asked.site.container.command if asked.site else "")
    view = view_of_job(job, asked.site)
    found = find_startable(inspect_input(runner, image, asked.site, tell, remote=remote, view=view), command)
    demand = demand_of(asked, flags.verify_key, flags.no_verify)
    cleared = clear(found, demand, tell)
    said = probing.result()
    host = loaded.with_runtime(said.host, asked.site, job.modules or (), job.runtime or "")
    command = loaded.command_of(host, asked.site, job.runtime or "")
    find_startable(found, command)
    check_runtime(job.env_image, command)
    assumed = loaded.assumption_line(host)
    for line in assumed:
        tell.step(f"{runner.place}: {line}")
    base = directory(runner, job.directory, remote=remote, variables=_of_site(asked))
    there, copied = find_copy(found, base)
    env = clear_env(
        env_file(job.env_image), found, demand, tell, base=base if remote else "", force=flags.force
    )
    copied = (*copied, *env.copied)
    return Target(runner, found, cleared, host, base, there, copied, assumed, said.site, env)


def prepare(
    runner: Runner, asked: JobRequest, flags: Flags, sources: Sources, tell: Tell, *, remote: bool
) -> Prepared:
    """Return a job that is ready to submit, without a change on the host."""
    job, site = asked.job, asked.site
    target = target_of(runner, asked, flags, sources.image, tell, remote=remote)
    image = target.image.facts
    gpus = may_have_gpus(job, site, target.host)
    sources, job = check_program(sources, asked, flags, target.image, tell, gpus=gpus)
    job = trainers.with_strategy(job, image)
    checked = has_check(image, trainer=bool(job.trainer), user_site=bool(job.user_site))
    if job.preflight and not checked:
        tell.step("The preflight check is skipped, because the program's MPI is unknown or missing")
    folder, data = data_parcels(target.runner, asked, sources.data, target.base, remote=remote)
    program = program_parcels(sources.program, target.base)
    if remote:
        check_desk_paths(sources.code, flags, target.runner)
    project = copy_project(sources.code, flags, target.base, tell) if remote else None
    tell_sweep(job, sources.code, tell, travels=project is not None)
    places = JobPaths(target.run(name_of(job)), target.there, folder, program[0].target if program else "")
    places = with_env_file(with_start_folder(places, sources.code, job, project, remote=remote), target.env)
    spec = specify(with_project(job, project), places)
    spec = msgspec.structs.replace(
        spec,
        preflight=bool(job.preflight) and checked,
        project=project.parcel.target if project else "",
        unsure=sources.code is not None and sources.code.facts.serial is None and not flags.copies,
    )
    spec = in_own_folders(spec) if flags.copies else spec
    check_queue(target, spec, asked, flags, tell)
    refuse([*trainer_faults(spec, image, LocalRunner())] if job.trainer else [], flags, tell)
    shown = read_command_here(job.command or ())
    request = request_of(spec, job.env or {}, job.mode, site, job.program, shown)
    request = request_with_env(request, spec, target.env)
    choice = _chosen(asked, flags, sources.fix, target.host, image, request, tell)
    tell_idle(target.image.name, spec, site, target.host, image, tell)
    notes = asked.notes(explain=flags.explain)
    made = with_script(target, asked, spec, choice, choice.because, notes)
    record = msgspec.structs.replace(made.record, fix=sources.fix.launch if sources.fix else None)
    return replace(made, record=record, parcels=(*program, *project_parcels(project), *target.copied, *data))


def check_program(
    sources: Sources, asked: JobRequest, flags: Flags, image: StartableImage, tell: Tell, *, gpus: bool
) -> tuple[Sources, JobFile]:
    """Check the program of a command against the image; return both with the image's name for Python.

    ``gpus`` says whether the ranks may have GPUs.

    Raises:
        CheckFailed: if the job would fail, unless ``--force`` is given.
    """
    job, code = asked.job, sources.code
    if code is None:
        return sources, job
    offered = read_offer(image.offers, sources.env) if image.offers else None
    if offered and asked.origins.get("name") == OF_SCRIPT:
        code = with_python(code, offered)
        job = msgspec.structs.replace(job, command=code.words)
    found = findings(code, job, image.name, offered, image.facts, here=flags.sync, gpus=gpus)
    refuse(found, flags, tell)
    return replace(sources, code=code), job


def check_queue(target: Target, spec: JobSpec, asked: JobRequest, flags: Flags, tell: Tell) -> None:
    """Refuse a job that Slurm would refuse because of its partition or account.

    The partitions of a site profile override the partitions that Slurm lists.

    Raises:
        CheckFailed: with the first fault, unless ``--force`` is given.
    """
    if asked.site and asked.site.scheduler != "slurm":
        return
    facts = target.cluster
    if asked.site and asked.site.partitions:
        facts = msgspec.structs.replace(facts, partitions=None)
    settings = target.host.slurm.settings if target.host.slurm else {}
    refuse([*array_faults(spec, settings), *queue_faults(spec, facts)], flags, tell)


def with_script(
    target: Target,
    asked: JobRequest,
    spec: JobSpec,
    choice: ModeChoice,
    because: str,
    notes: Sequence[str] = (),
) -> Prepared:
    """Return the job with its script; ``because`` and ``notes`` are comments in it."""
    site = asked.site
    runtime = loaded.command_of(target.host, site, spec.runtime)
    spread, why = broadcast.decide_broadcast(spec, site, runtime)
    left = spec.broadcast if spec.broadcast == "on" else ""
    spec = msgspec.structs.replace(spec, broadcast="on" if spread else left)
    lines = (
        target.cleared.note,
        *target.assumed,
        *notes,
        *([f"the image is copied to each node: {why}"] if spread else []),
    )
    copies = copies_of(target) if spread else {}
    text = script.job_script(spec, choice.plan, because, runtime, site, target.image.facts, lines, copies)
    record = make_record(target.runner.place, spec, choice, target.cleared, target.env.digest)
    return Prepared(record, text, target.copied, runtime, secrets_among(asked.job.env or {}))


def copies_of(target: Target) -> dict[str, tuple[str, int]]:
    """Return digest and size of image and environment, by path; empty if the image is only there."""
    if target.image.here is None:
        return {}
    found = {target.there: (target.cleared.digest, target.image.here.stat().st_size)}
    if target.env.here is not None:
        found[target.env.there] = (target.env.digest, target.env.here.stat().st_size)
    return found


def find_copy(image: StartableImage, base: str) -> tuple[str, tuple[Parcel, ...]]:
    """Return the image's path on the host, and the file to copy into the host's folder ``base``."""
    if image.there or image.here is None:
        return image.there, ()
    there = image_there(image.here, image.digest, base)
    return there, (Parcel(image.here, there, image.digest),)


def make_record(
    place: str, spec: JobSpec, choice: ModeChoice, cleared: Cleared, env_digest: str = ""
) -> JobRecord:
    """Return the record of a job before its submission, without secret values.

    ``cleared`` and ``env_digest`` come from the check of the signatures.
    """
    made = msgspec.structs.replace(choice.plan, env=without_secrets(choice.plan.env))
    return JobRecord(
        key=posixpath.basename(spec.directory),
        id="",
        place=place,
        spec=spec,
        mode=made.mode,
        plan=made,
        predicted=choice.prediction.outcome,
        forced=choice.forced,
        image_digest=cleared.digest,
        env_digest=env_digest,
        image_check=cleared.check,
        submitted=dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
    )


def _chosen(
    asked: JobRequest,
    flags: Flags,
    fix: Fix | None,
    host: HostFacts,
    facts: ImageFacts,
    request: Request,
    tell: Tell,
) -> ModeChoice:
    """Return the launch in the requested mode, else in the mode that the engine or the site chooses."""
    mode = request.mode
    if fix:
        tell_fix(flags, fix, facts, tell)
        mode = fix.launch.mode
    verdict = predict(host, facts, request, asked.site, fix.launch if fix else None)
    if mode is None and verdict.chosen is None and asked.site:
        mode = asked.site.launch.mode
    return choose.choose(verdict, mode, force=flags.force, others=trainers.other_modes(asked.job))


def _of_site(asked: JobRequest) -> bool:
    """Return whether the folder on the cluster comes from the site profile."""
    return asked.site is not None and asked.origins.get("directory", "").startswith("site ")
