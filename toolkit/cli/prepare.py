"""Prepare a launch: what a person asked for, joined with facts and verdict, becomes a record and a script."""

import datetime as dt
import posixpath
import shlex
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.cli import fixfile
from toolkit.data import cache_dir
from toolkit.engine.predict import predict
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.inspect import inspect
from toolkit.image.reference import TRANSPORTS, for_apptainer
from toolkit.image.verify import before_launch
from toolkit.launch import choose, plan, records, script, trainers
from toolkit.launch.fix import judged
from toolkit.model.facts import ImageFacts
from toolkit.model.fix import Fix
from toolkit.model.job import ImageCheck, JobRecord, JobSpec
from toolkit.model.prediction import Mode, Request
from toolkit.model.progress import Tell
from toolkit.probe.probe import probe
from toolkit.run.command import Command, Runner
from toolkit.run.stage import Parcel, sha256

_MARK = "toolkit-value:"
"""Stands before what a login shell is asked for; profiles print banners to standard output too."""


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
    fix: str | None = None
    verify_key: str | None = None
    no_verify: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """What a launch takes from this machine: the image, and the trainer's data if there is a trainer."""

    image: Path
    data: Path | None
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that only needs its files copied and its script submitted."""

    record: JobRecord
    script: str
    parcels: tuple[Parcel, ...]


def check(options: Options, words: tuple[str, ...]) -> Sources:
    """Judge all that can be judged here, before a place is asked and a large file is read.

    Raises:
        BadInput: for an option that cannot be.
        Missing: if the image or the data set is not on this machine.
    """
    if options.trainer is None:
        script.check_command(words)
    dataset = trainers.find(options.trainer).dataset if options.trainer else None
    script.check_names(name=options.name, partition=options.partition, account=options.account)
    script.check_time(options.time)
    plan.check_variables(_environment(options.env))
    _check_directory(options.directory or "")
    fix = fixfile.load(Path(options.fix)) if options.fix else None
    if fix and options.mode not in {None, fix.launch.mode}:
        raise BadInput(
            f"--mode {options.mode}: {options.fix} is for {fix.launch.mode}; leave one of them out"
        )
    if options.no_verify and options.verify_key:
        raise BadInput("--no-verify and --verify-key ask for opposite things; leave one of them out")
    if options.verify_key and not Path(options.verify_key).is_file():
        raise BadInput(f"--verify-key {options.verify_key}: no such file")
    folder = _data_folder(options.data, dataset) if dataset else None
    return Sources(find_image(options.image), folder, fix)


def prepare(
    runner: Runner, options: Options, words: tuple[str, ...], sources: Sources, tell: Tell, *, remote: bool
) -> Prepared:
    """Do everything up to the last call: facts, verdict, specification, script; nothing is changed there.

    ``words`` is what stood after ``--``; ``remote`` says that files have to be copied to the runner's place.
    """
    image = sources.image
    tell.step(f"Reading {image.name} and asking {runner.place} what it has")
    facts = inspect(image, tell=tell)
    if facts.format not in {"sif", "squashfs"}:
        raise BadInput(
            f"--image {image}: a job starts from a SIF, and this is {facts.format}",
            fix=f"make one: {shlex.join(['apptainer', 'build', *for_apptainer(facts)])}",
        )
    image_check = _checked(options, image, facts.format, tell)
    request = Request(
        nodes=options.nodes,
        ranks_per_node=options.ranks_per_node,
        mode=options.mode,
        env=_environment(options.env),
    )
    host = probe(runner)
    verdict = predict(host, facts, request)
    mode = options.mode
    if sources.fix:
        _tell_fix(options, sources.fix, facts, tell)
        verdict, mode = judged(verdict, sources.fix, host, facts, request), sources.fix.launch.mode
    choice = choose.choose(verdict, mode, force=options.force)
    if options.preflight and facts.stack is None:
        tell.step(f"The preflight is left out: {image.name} does not say that it has one")
    base = directory(runner, options.directory, remote=remote)
    # Reading the image took its digest already, unless it is large and has no checksum beside it.
    digest = (facts.digest or "").removeprefix("sha256:") or sha256(image)
    there = image_there(image, digest, base) if remote else str(image)
    spec, data = _spec(options, words, base, there, sources.data, remote=remote)
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
        submitted=dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
        forced=choice.forced,
        image_check=image_check,
    )
    parcels = (Parcel(image, there, digest), *data) if remote else ()
    text = script.job_script(spec, choice.plan, choice.because, plan.runtime_of(host))
    return Prepared(record, text, parcels)


def _checked(options: Options, image: Path, form: str, tell: Tell) -> ImageCheck:
    """Look at the signatures of an image; what has none may run unless a key is asked for."""
    if options.no_verify:
        tell.step(f"The signatures of {image.name} are not looked at: --no-verify")
        return ImageCheck(signature="not-checked")
    if form != "sif":
        if options.verify_key:
            raise CheckFailed(f"--image {image}: a bare {form} has no signature", fix="launch the signed SIF")
        return ImageCheck(signature="none")
    found = before_launch(image, Path(options.verify_key) if options.verify_key else None)
    match found.signature:
        case "good":
            tell.step(f"{image.name} is signed by {', '.join(found.signers)}")
        case "unknown-key":
            key = ", ".join(found.signers)
            tell.step(
                f"{image.name} is whole; whose signature it has is not known, the key {key} is not here"
            )
        case "no-gpg":
            tell.step(f"The signature of {image.name} is not checked: gpg is not installed here")
        case _:
            pass
    return found


def _tell_fix(options: Options, fix: Fix, image: ImageFacts, tell: Tell) -> None:
    """Say what a fix adds, and whether it was made for another image."""
    add = fix.launch
    env = (f"{name}={value}" for name, value in add.env.items())
    words = (*add.container, *env, *(f"-u {name}" for name in add.unset), *(f"--bind {b}" for b in add.binds))
    tell.step(f"With {options.fix}: mode {add.mode}{', ' if words else ''}{', '.join(words)}")
    if fix.digest and image.digest and fix.digest != image.digest:
        tell.step(f"{options.fix} was made for {fix.image or 'an image'} with other contents than this one")


def _spec(
    options: Options, words: tuple[str, ...], base: str, image: str, local: Path | None, *, remote: bool
) -> tuple[JobSpec, list[Parcel]]:
    """Return the specification and the data files that it needs there; ``local`` is the data's folder."""
    name = options.name or options.trainer or script.as_name(posixpath.basename(words[0]))
    directory = posixpath.join(base, "runs", records.new_key(name))
    binds: list[str] = [plan.bind(directory)]
    parcels: list[Parcel] = []
    if options.trainer is not None and local is not None:
        known = trainers.find(options.trainer)
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
    """Take a path as it is; look for the name of a recipe where ``make image`` puts its SIF.

    Raises:
        BadInput: if a file is named that is not there.
        Missing: if the recipe's image was not made yet.
    """
    path = Path(given).expanduser()
    if path.is_file():
        return path.resolve()
    if given.startswith(TRANSPORTS):
        raise BadInput(
            f"--image {given}: a job starts from a SIF",
            fix=f"make one: apptainer build my.sif {shlex.quote(given)}",
        )
    if "/" in given or given.endswith(".sif"):
        raise BadInput(f"--image {given}: {'a folder; name a SIF file' if path.is_dir() else 'no such file'}")
    for folder in (Path("build/images"), Path("images"), Path()):
        candidate = folder / f"{given}.sif"
        if candidate.is_file():
            return candidate.resolve()
    name = shlex.quote(given)
    raise Missing(
        f"there is no image {given} in build/images, images or this folder",
        fix=f"toolkit image build {name} && toolkit image sif {name} -o build/images/{name}.sif",
    )


def _data_folder(given: str | None, dataset: str) -> Path:
    folder = Path(given).expanduser() if given else cache_dir() / "data" / dataset
    if not folder.is_dir():
        wanted = f" -o {shlex.quote(given)}" if given else ""
        raise Missing(f"the data set {dataset} is not in {folder}", fix=f"toolkit data get {dataset}{wanted}")
    return folder.resolve()


def directory(runner: Runner, wanted: str | None, *, remote: bool) -> str:
    """Return the folder on the cluster that holds images, data and runs, absolute."""
    if not remote:
        return str(Path(wanted or ".").expanduser().resolve())
    given = wanted or "toolkit"
    if given.startswith("/"):
        return given
    # WORK is what many centres, and our virtual cluster, call the large file system.
    folder = "HOME" if given.startswith("~") else "WORK"
    base = login_variable(runner, folder) or login_variable(runner, "HOME")
    if not base.startswith("/"):
        raise Missing(f"{runner.place} did not tell its home folder", fix="give --directory with a full path")
    return posixpath.normpath(posixpath.join(base, given.removeprefix("~").lstrip("/")))


def image_there(image: Path, digest: str, base: str) -> str:
    """Return where an image is copied to; its digest lets images of one name live side by side."""
    return posixpath.join(base, "images", f"{image.stem}-{digest[:12]}{image.suffix}")


def login_variable(runner: Runner, name: str) -> str:
    """Return a variable as a login shell there has it, whatever its profile prints."""
    line = f'printf "\n%s%s\n" "{_MARK}" "${{{name}:-}}"'
    text = runner.run(Command.of("sh", "-lc", line, timeout=30)).text
    return next((line.removeprefix(_MARK) for line in text.splitlines() if line.startswith(_MARK)), "")


def _check_directory(given: str) -> None:
    if given.startswith("~") and given != "~" and not given.startswith("~/"):
        raise BadInput(
            f"--directory {given}: only one's own home can be named by ~", fix="give the full path"
        )
    plan.bind(given)


def _environment(pairs: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise BadInput(f"--env {pair}: write NAME=VALUE")
        values[name] = value
    return values
