"""Make a notebook's job out of what a person asked for, the site and the image; nothing is changed there."""

import datetime as dt
import posixpath

import msgspec

from toolkit.cli.prepare import directory, find_image, image_there, login_variable
from toolkit.errors import BadInput
from toolkit.image.inspect import inspect
from toolkit.knowledge import sites
from toolkit.launch import notebook, plan, records
from toolkit.launch.script import job_script
from toolkit.launch.surroundings import Around
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.progress import Tell
from toolkit.model.site import Defaults, Site
from toolkit.probe.probe import probe
from toolkit.run.command import Runner
from toolkit.run.stage import Parcel, sha256

_TIME = "02:00:00"
_WHY = "one task, which speaks no MPI"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``toolkit notebook`` that make the job, as given."""

    image: str
    packages: str
    folder: str
    directory: str | None
    time: str | None
    cpus: int | None
    gpus: int | None
    memory: str
    partition: str | None
    account: str | None
    bind: tuple[str, ...]
    env: tuple[str, ...]
    site: str | None


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job whose files are to be copied and whose script is to be submitted.

    ``runtime`` is the command that starts containers there.
    """

    record: JobRecord
    script: str
    parcels: tuple[Parcel, ...]
    runtime: str


def prepared(runner: Runner, options: Options, tell: Tell, *, remote: bool) -> Prepared:
    """Return the job; ``remote`` says that the image has to be copied to the runner's place.

    Raises:
        BadInput: for an option that cannot be.
        Missing: if the image is not on this machine, or the place does not answer.
    """
    site = sites.site(options.site) if options.site else None
    if site and site.scheduler != "slurm":
        raise BadInput(
            f"--site {options.site}: a notebook is a job of Slurm, and that site has {site.scheduler}"
        )
    for option, path in (("packages", options.packages), ("folder", options.folder)):
        if path and not path.startswith("/"):
            raise BadInput(f"--{option} {path}: give the full path on the cluster")
    image = find_image(options.image)
    tell.step(f"Reading {image.name} and asking {runner.place} what it has")
    facts = inspect(image, tell=tell)
    if facts.format not in {"sif", "squashfs"}:
        raise BadInput(f"--image {image}: a job starts from a SIF, and this is {facts.format}")
    host = probe(runner)
    digest = (facts.digest or "").removeprefix("sha256:") or sha256(image)
    base = directory(runner, options.directory, remote=remote)
    there = image_there(image, digest, base) if remote else str(image)
    folder = options.folder or login_variable(runner, "WORK") or login_variable(runner, "HOME") or base
    own = posixpath.join(base, "runs", records.new_key(notebook.NAME))
    spec = _spec(options, site, own, there, folder)
    spec = msgspec.structs.replace(spec, command=notebook.command(own, folder, options.packages, facts))
    runtime = site.container.command if site else plan.runtime_of(host)
    script = job_script(spec, notebook.PLAN, _WHY, runtime, Around(site=site, host=host, image=facts))
    record = JobRecord(
        key=posixpath.basename(own),
        id="",
        place=runner.place,
        spec=spec,
        mode=notebook.PLAN.mode,
        plan=notebook.PLAN,
        predicted="ok",
        image_digest=f"sha256:{digest}",
        submitted=dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
    )
    parcels = (Parcel(image, there, digest),) if remote else ()
    return Prepared(record=record, script=script, parcels=parcels, runtime=runtime)


def _spec(options: Options, site: Site | None, own: str, image: str, folder: str) -> JobSpec:
    known = site.defaults if site else Defaults()
    packages = [plan.bind(options.packages, read_only=True)] if options.packages else []
    return JobSpec(
        name=notebook.NAME,
        image=image,
        command=(),
        directory=own,
        cpus_per_rank=options.cpus or known.cpus_per_rank,
        gpus_per_node=options.gpus,
        memory=options.memory or known.memory,
        time=options.time or known.time or _TIME,
        partition=options.partition or known.partition or None,
        account=options.account or known.account or None,
        qos=known.qos,
        constraint=known.constraint,
        licenses=known.licenses,
        env=_environment(options.env),
        binds=(plan.bind(own), plan.bind(folder), *packages, *options.bind),
        preflight=False,
        site=options.site or "",
    )


def _environment(pairs: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise BadInput(f"--env {pair}: write NAME=VALUE")
        values[name] = value
    return values
