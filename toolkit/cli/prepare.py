"""Prepare a launch: what a person asked for, joined with facts and verdict, becomes a record and a script."""

import datetime as dt
import itertools
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from toolkit.cli.flags import Flags, check_words, tell_fix
from toolkit.cli.gate import Cleared, clear, demand_of
from toolkit.cli.layering import Asked
from toolkit.cli.shared import Found, OnCluster, data_of, data_there, folder_there, image_of, look, startable
from toolkit.cli.whereabouts import directory, find_image, image_there, login_variable, program_file
from toolkit.engine.predict import predict
from toolkit.errors import BadInput
from toolkit.launch import choose, loaded, plan, records, script, trainers
from toolkit.launch.choose import Choice
from toolkit.launch.idle import tell_idle
from toolkit.launch.specify import Places, name_of, request_of, specify
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.fix import Fix
from toolkit.model.hidden import Hidden, hidden, shown
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.prediction import Request
from toolkit.model.progress import Tell
from toolkit.probe.asking import of_job
from toolkit.probe.probe import probe
from toolkit.run.command import Runner
from toolkit.run.patience import AWAY_SECONDS, Patient, telling
from toolkit.run.stage import Parcel, sha256

__all__ = [
    "Flags", "Prepared", "Sources", "check", "directory", "find_image", "image_there", "login_variable",
    "prepare", "to_record",
]  # fmt: skip


_MOST_FILES = 10_000
"""Files of a data set that are copied; each is hashed here and there."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What a launch takes from this machine: the image, and the trainer's data if there is a trainer."""

    image: Path | OnCluster
    data: Path | OnCluster | None
    fix: Fix | None = None
    program: Path | None = None
    """The file of a trainer of one's own."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that only needs its files copied and its script submitted."""

    record: JobRecord
    script: str
    parcels: tuple[Parcel, ...]
    secrets: Mapping[str, Hidden] = field(default_factory=dict)


def check(asked: Asked, flags: Flags) -> Sources:
    """Judge all that can be judged here, before a place is asked and a large file is read.

    Raises:
        BadInput: for an option that cannot be.
        Missing: if the image or the data set is not on this machine.
    """
    job = asked.job
    fix = check_words(asked, flags)
    known = trainers.find(job.trainer) if job.trainer else None
    folder = data_of(job.data, known.dataset, asked.site) if known and (known.dataset or job.data) else None
    program = program_file(job.trainer or "") if known and known.own else None
    return Sources(image_of(job.image or "", asked.site), folder, fix, program)


def prepare(
    runner: Runner, asked: Asked, flags: Flags, sources: Sources, tell: Tell, *, remote: bool
) -> Prepared:
    """Do everything up to the last call: facts, verdict, specification, script; nothing is changed there.

    So all that is asked may be asked twice, and a connection that breaks is made anew.
    ``remote`` says that files have to be copied to the runner's place.
    """
    job, runner = asked.job, Patient(runner, telling(tell), AWAY_SECONDS)
    tell.step(f"Reading {sources.image.name} and asking {runner.place} what it has")
    image = startable(look(runner, sources.image, asked.site, tell, remote=remote))
    facts = image.facts
    cleared = clear(image, demand_of(asked, flags.verify_key, flags.no_verify), tell)
    trainers.check_carried(job, facts)
    host = loaded.with_runtime(probe(runner, of_job(job.partition)), asked.site, job.modules or ())
    assumed = loaded.assumed(host)
    for line in assumed:
        tell.step(f"{runner.place}: {line}")
    if job.preflight and facts.stack is None:
        tell.step(f"The preflight is left out: {image.name} does not say that it has one")
    base = directory(runner, job.directory, remote=remote, variables=_of_site(asked))
    there, copied = to_be_copied(image, base)
    folder, data = _data(runner, asked, sources.data, base, remote=remote)
    program = _program(sources.program, base)
    run = posixpath.join(base, "runs", records.new_key(name_of(job)))
    spec = specify(job, Places(run, there, folder, program[0].target if program else ""))
    spec = msgspec.structs.replace(spec, preflight=bool(job.preflight) and facts.stack is not None)
    request = request_of(spec, job.env or {}, job.mode, asked.site)
    choice = _chosen(asked, flags, sources.fix, host, facts, request, tell)
    record = to_record(runner.place, spec, choice, cleared, sources.fix)
    tell_idle(image.name, spec, asked.site, host, facts, tell)
    text = script.job_script(
        spec,
        choice.plan,
        choice.because,
        asked.site.container.command if asked.site else plan.runtime_of(host),
        asked.site,
        facts,
        (cleared.note, *assumed, *asked.notes(explain=flags.explain)),
    )
    return Prepared(record, text, (*program, *copied, *data), hidden(job.env or {}))


def to_be_copied(image: Found, base: str) -> tuple[str, tuple[Parcel, ...]]:
    """Return where a job finds an image, and the copy that it takes to the folder ``base`` there."""
    if image.there or image.here is None:
        return image.there, ()
    there = image_there(image.here, image.digest, base)
    return there, (Parcel(image.here, there, image.digest),)


def to_record(
    place: str, spec: JobSpec, choice: Choice, cleared: Cleared, fix: Fix | None = None
) -> JobRecord:
    """Return the record of a job that is about to be submitted; it has no secret value.

    ``cleared`` comes from the gate.
    """
    made = msgspec.structs.replace(choice.plan, env=shown(choice.plan.env))
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
        image_check=cleared.check,
        fix=fix.launch if fix else None,
        submitted=dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
    )


def _chosen(
    asked: Asked,
    flags: Flags,
    fix: Fix | None,
    host: HostFacts,
    facts: ImageFacts,
    request: Request,
    tell: Tell,
) -> Choice:
    """Return the launch: in the mode that is asked for, the engine's, or the site's."""
    mode = request.mode
    if fix:
        tell_fix(flags, fix, facts, tell)
        mode = fix.launch.mode
    verdict = predict(host, facts, request, asked.site, fix.launch if fix else None)
    if mode is None and verdict.chosen is None and asked.site:
        mode = asked.site.launch.mode
    return choose.choose(verdict, mode, force=flags.force, others=trainers.other_modes(asked.job))


def _of_site(asked: Asked) -> bool:
    """Tell whether the folder on the cluster is the one that the site profile names."""
    return asked.site is not None and asked.origins.get("directory", "").startswith("site ")


def _data(
    runner: Runner, asked: Asked, local: Path | OnCluster | None, base: str, *, remote: bool
) -> tuple[str, list[Parcel]]:
    """Return the folder of the data there, and the files that have to be copied into it.

    Raises:
        BadInput: if they are more than anybody would copy file by file.
    """
    if asked.job.trainer is None or local is None:
        return "", []
    if isinstance(local, OnCluster):
        return folder_there(runner, local), []
    if not remote:
        return str(local), []
    name = trainers.find(asked.job.trainer).dataset or local.name
    folder = posixpath.join(base, "data", name)
    found = (path for path in local.rglob("[!.]*") if path.is_file())
    files = sorted(itertools.islice(found, _MOST_FILES + 1))
    if len(files) > _MOST_FILES:
        raise BadInput(
            f"--data {local}: more than {_MOST_FILES} files would be copied to the cluster",
            fix="bring them there once, and launch on its login node, where nothing is copied",
        )
    parcels = [Parcel.of(f, posixpath.join(folder, *f.relative_to(local).parts)) for f in files]
    if shared := data_there(runner, asked.site, name, folder, parcels):
        return shared, []
    return folder, parcels


def _program(local: Path | None, base: str) -> tuple[Parcel, ...]:
    """Return the file of a trainer of one's own; its folder there carries its digest, so that it stays."""
    if local is None:
        return ()
    digest = sha256(local)
    return (Parcel(local, posixpath.join(base, "programs", digest[:12], local.name), digest),)
