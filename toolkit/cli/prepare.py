"""Prepare a launch: what a person asked for, joined with facts and verdict, becomes a record and a script."""

import datetime as dt
import posixpath
import shlex
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.data import cache_dir
from toolkit.engine.predict import predict
from toolkit.errors import BadInput, Missing
from toolkit.image.inspect import inspect
from toolkit.launch import choose, plan, records, trainers
from toolkit.launch.script import job_script
from toolkit.launch.stage import Parcel, sha256
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.prediction import Mode, Request
from toolkit.model.progress import Tell
from toolkit.probe.probe import probe
from toolkit.run.command import Command, Runner


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``toolkit launch``, as given."""

    trainer: str | None
    image: str
    nodes: int
    ranks_per_node: int
    cpus_per_rank: int | None
    mode: Mode | None
    force: bool
    strategy: str | None
    data: str | None
    directory: str | None
    time: str
    partition: str | None
    account: str | None
    name: str | None
    env: tuple[str, ...]
    bind: tuple[str, ...]
    preflight: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that only needs its files copied and its script submitted."""

    record: JobRecord
    script: str
    parcels: tuple[Parcel, ...]


def prepare(
    runner: Runner, options: Options, words: tuple[str, ...], tell: Tell, *, remote: bool
) -> Prepared:
    """Do everything up to the last call: facts, verdict, specification, script; nothing is changed there.

    ``words`` is what stood after ``--``; ``remote`` says that files have to be copied to the runner's place.
    """
    image = find_image(options.image)
    tell.step(f"Reading {image.name} and asking {runner.place} what it has")
    facts = inspect(image)
    request = Request(nodes=options.nodes, ranks_per_node=options.ranks_per_node, mode=options.mode)
    choice = choose.choose(predict(probe(runner), facts, request), options.mode, force=options.force)
    base = _directory(runner, options, remote=remote)
    digest = sha256(image)
    # The digest in the name lets images of one name live side by side, and a running job keep its own.
    there = (
        posixpath.join(base, "images", f"{image.stem}-{digest[:12]}{image.suffix}") if remote else str(image)
    )
    spec, data = _spec(options, words, base, there, remote=remote)
    spec = msgspec.structs.replace(spec, preflight=options.preflight and facts.stack is not None)
    record = JobRecord(
        key=posixpath.basename(spec.directory),
        id="",
        place=runner.place,
        spec=spec,
        mode=choice.plan.mode,
        plan=choice.plan,
        predicted=choice.prediction.outcome,
        image_digest=f"sha256:{digest}",
        submitted=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        forced=choice.forced,
    )
    parcels = (Parcel(image, there, digest), *data) if remote else ()
    return Prepared(record, job_script(spec, choice.plan, choice.because), parcels)


def _spec(
    options: Options, words: tuple[str, ...], base: str, image: str, *, remote: bool
) -> tuple[JobSpec, list[Parcel]]:
    """Return the specification and the data files that it needs there."""
    name = options.name or options.trainer or (posixpath.basename(words[0]) if words else "") or "job"
    directory = posixpath.join(base, "runs", records.new_key(name))
    binds: list[str] = [plan.bind(directory)]
    parcels: list[Parcel] = []
    if options.trainer is not None:
        known = trainers.find(options.trainer)
        local = _data_folder(options.data, known.dataset)
        folder = posixpath.join(base, "data", known.dataset) if remote else str(local)
        if remote:
            files = sorted(f for f in local.iterdir() if f.is_file() and not f.name.startswith("."))
            parcels = [Parcel.of(f, posixpath.join(folder, f.name)) for f in files]
        binds.append(plan.bind(folder, read_only=True))
        strategy = options.strategy or ("horovod" if options.nodes * options.ranks_per_node > 1 else "single")
        words = known.command(folder, directory, strategy, words)
    spec = JobSpec(
        name=name,
        image=image,
        command=words,
        directory=directory,
        nodes=options.nodes,
        ranks_per_node=options.ranks_per_node,
        cpus_per_rank=options.cpus_per_rank,
        time=options.time,
        partition=options.partition,
        account=options.account,
        env=_environment(options.env),
        binds=(*binds, *options.bind),
    )
    return spec, parcels


def find_image(given: str) -> Path:
    """Take a path as it is; look for the name of a recipe where ``make image`` puts its SIF."""
    path = Path(given).expanduser()
    if path.is_file():
        return path.resolve()
    for folder in (Path("build/images"), Path("images"), Path()):
        candidate = folder / f"{given}.sif"
        if candidate.is_file():
            return candidate.resolve()
    raise Missing(f"there is no image {given}", fix="make it with: make image, or name a file with --image")


def _data_folder(given: str | None, dataset: str) -> Path:
    folder = Path(given).expanduser() if given else cache_dir() / "data" / dataset
    if not folder.is_dir():
        wanted = f" -o {shlex.quote(given)}" if given else ""
        raise Missing(f"the data set {dataset} is not in {folder}", fix=f"toolkit data get {dataset}{wanted}")
    return folder.resolve()


def _directory(runner: Runner, options: Options, *, remote: bool) -> str:
    """Return the folder on the cluster that holds images, data and runs, absolute."""
    if not remote:
        return str(Path(options.directory or ".").expanduser().resolve())
    if options.directory and options.directory.startswith("/"):
        return options.directory
    # WORK is what many centres, and our virtual cluster, call the large file system.
    base = runner.run(Command.of("sh", "-lc", 'printf %s "${WORK:-$HOME}"', timeout=30)).text
    if not base.startswith("/"):
        raise Missing(f"{runner.place} did not tell its home folder", fix="give --directory with a full path")
    return posixpath.join(base, options.directory or "toolkit")


def _environment(pairs: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise BadInput(f"--env {pair}: write NAME=VALUE")
        values[name] = value
    return values
