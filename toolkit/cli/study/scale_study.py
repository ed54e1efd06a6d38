"""Make a study out of what a person asks for, join it with what is there, and show its runs."""

import datetime as dt
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from toolkit.cli.frame.say import say, say_text
from toolkit.errors import BadInput, CheckFailed
from toolkit.folders import at_home
from toolkit.job.request.flags import Flags, check_words
from toolkit.job.request.layering import announce, asked
from toolkit.launch.request.specify import name_of
from toolkit.launch.request.variables import looks_secret
from toolkit.model.hidden import Hidden, hidden, shown
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.model.study import Scaling, Study
from toolkit.near import near
from toolkit.report.table import table
from toolkit.run.remote.ssh_file import check_ssh_config
from toolkit.study import collect, folder, proof, sweep
from toolkit.study.advice import advise
from toolkit.study.timeline import tallied
from toolkit.study.timeline_file import events

_MEASURED = 2
"""Epochs that count, where nobody says how many there are to be."""

_JOB_FILES = (".yaml", ".yml")

_LOCAL = {"image": Path.is_file, "data": Path.is_dir, "trainer": Path.is_file, "env_file": Path.is_file}
"""Fields that may name something of this machine, and how it is told whether they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """The options of ``toolkit scale`` that say what a study is; ``over`` are numbers of nodes."""

    said: Mapping[str, Any]
    words: tuple[str, ...]
    ranks: tuple[int, ...]
    over: tuple[int, ...] | None
    per_node: int | None
    repeat: int
    scaling: Scaling
    batch: int | None
    epochs: int | None
    warm_up: int
    compare: str | None
    prove: Path | None
    profile: bool
    pattern: str | None
    unit: str
    host: str | None
    cluster: str | None
    ssh_config: Path | None


def study_of(wanted: StudyOptions, flags: Flags, tell: Tell) -> Study:
    """Return the study, after looking at every run that it has.

    Raises:
        BadInput: naming the option that cannot be.
    """
    if wanted.ssh_config:
        check_ssh_config(wanted.ssh_config)
    compare, values = _compared(wanted.compare)
    settings = _proved(wanted)
    trainer = wanted.said.get("trainer") or compare == "trainer"
    for name in values if compare == "trainer" else [str(trainer or "")]:
        _check_no_job_file(name)
    study = Study(
        name="",
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        scaling=wanted.scaling,
        sizes=sweep.sizes(wanted.ranks, wanted.over or (), wanted.per_node),
        repeats=wanted.repeat,
        compare=compare,
        values=values or tuple(settings),
        settings=settings,
        warm_up=wanted.warm_up,
        epochs=(wanted.epochs or wanted.warm_up + _MEASURED) if trainer else wanted.epochs,
        batch=wanted.batch,
        profile=wanted.profile,
        pattern=wanted.pattern or "",
        unit=wanted.unit,
        said=_without_secrets(_with_full_paths(wanted.said)),
        secrets=tuple(secrets_of(wanted.said)),
        words=wanted.words,
        host=wanted.host,
        cluster=wanted.cluster,
        ssh_config=str(wanted.ssh_config.resolve()) if wanted.ssh_config else None,
    )
    sweep.check(study)
    if study.pattern:
        collect.compiled(study.pattern)
    _check_settings(study)
    made = [asked(*sweep.asked_of(study, point)) for point in sweep.points(study)]
    announce(*made, tell=tell)
    for one in made:
        check_words(one, flags)
    name = "-".join(values) if compare == "trainer" else name_of(made[0].job)
    return msgspec.structs.replace(study, name=name)


def secrets_of(said: Mapping[str, Any]) -> dict[str, Hidden]:
    """Return the secret variables that options of this call give to every run."""
    return hidden(said.get("env") or {})


def _without_secrets(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a study may keep: its folder is meant to be passed on."""
    env = shown(said.get("env") or {})
    return {**{name: value for name, value in said.items() if name != "env"}, **({"env": env} if env else {})}


def _check_no_job_file(trainer: str) -> None:
    if trainer.endswith(_JOB_FILES):
        raise BadInput(
            f"{trainer}: toolkit scale takes no job file, as sizes, epochs and batch are its own",
            fix="give the trainer and the options that the file holds, as in toolkit scale mnist --ranks 1,2",
        )


def _with_full_paths(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said so that it means the same in any working directory.

    What is no file or folder here is left as it is: a name, or a path on the cluster.
    """
    full = dict(said)
    for field, is_there in _LOCAL.items():
        given = str(full.get(field) or "")
        path = at_home(given)
        # Only the name of a file of one's own is a path, whatever else lies here under a trainer's name.
        if given and is_there(path) and (field != "trainer" or path.suffix == ".py"):
            full[field] = str(path.resolve())
    return full


def _check_settings(study: Study) -> None:
    """Refuse what settings and variables say of a job if a study would overrule it without a word.

    Raises:
        BadInput: naming the place.
    """
    said, _ = sweep.asked_of(study, sweep.points(study)[0])
    found = asked(said, ())
    job, origins = found.job, found.origins
    if job.trainer and not sweep.trainer_of(study):
        raise BadInput(
            f"{origins['trainer']}: names the trainer {job.trainer}, which would take the command after --",
            fix=f"take it out there, or name it here: toolkit scale {job.trainer}",
        )
    if job.arguments and not study.words:
        raise BadInput(
            f"{origins['arguments']}: toolkit scale gives arguments of its own in place of these",
            fix=f"give them here: -- {shlex.join(job.arguments)}",
        )
    if study.profile and job.workdir:
        raise BadInput(
            f"{origins['workdir']}: --profile needs the job's folder as working directory, "
            "as Horovod writes its timeline there",
            fix="leave one of the two out",
        )


def joined(where: Path, study: Study) -> Study:
    """Return a study together with the one that its folder holds already, which it may only make larger.

    What figures do not depend on, such as a time limit, is taken from the new one.

    Raises:
        BadInput: if the folder holds another one, or both cannot be kept in one folder.
    """
    if not folder.is_study(where):
        return study
    old = folder.load(where)
    old = msgspec.structs.replace(old, said=_with_full_paths(old.said))
    if differs := sweep.differences(old, study):
        raise BadInput(
            f"{where} holds another study: it differs in {', '.join(differs)}",
            fix="name another folder with --study",
            detail=[f"{name}: {before!r} there, {now!r} now" for name, (before, now) in differs.items()],
        )
    both = msgspec.structs.replace(
        old,
        sizes=tuple(sorted({*old.sizes, *study.sizes})),
        repeats=max(old.repeats, study.repeats),
        values=tuple(dict.fromkeys((*old.values, *study.values))),
        profile=old.profile or study.profile,
        said=study.said,
        secrets=study.secrets,
        ssh_config=study.ssh_config,
    )
    sweep.check(both)
    return both


def print_runs(where: Path, study: Study) -> None:
    """Show what would be run, and what is there already; nothing is changed."""
    study = joined(where, study)
    rows = []
    for number, point in enumerate(folder.load_points(where, study), 1):
        _, words = sweep.asked_of(study, point)
        what = list(filter(None, [sweep.trainer_of(study, point)]))
        rows.append((number, point.title, point.state, shlex.join([*what, *words])))
    say_text(table(("", "run", "state", "what"), rows))
    say("", f"{len(rows)} runs, {study.scaling} scaling; the study is kept in {where}")


def _proved(wanted: StudyOptions) -> dict[str, dict[str, str]]:
    """Return the series that tell whether what a timeline suggests is of use; none where nobody asks.

    Raises:
        BadInput: if nothing can be compared.
        CheckFailed: if the timeline tells too little.
    """
    if wanted.prove is None:
        return {}
    if wanted.compare:
        raise BadInput("--prove and --compare: give one of them; --prove has its own series")
    if min(wanted.ranks) < 2:
        raise BadInput("--prove: a rank alone reduces nothing", fix="--ranks from 2 on")
    advice = advise(tallied(events(wanted.prove)))
    if advice is None:
        raise CheckFailed(f"{wanted.prove}: has too few reductions to suggest settings from")
    return proof.settings(advice)


def _compared(text: str | None) -> tuple[str, tuple[str, ...]]:
    """Read ``strategy=single,horovod``, or a variable of the environment with its values.

    Raises:
        BadInput: if it is written otherwise, or there is no such field.
    """
    if text is None:
        return "", ()
    name, separator, rest = text.partition("=")
    values = tuple(dict.fromkeys(value.strip() for value in rest.split(",") if value.strip()))
    if not separator or not values:
        raise BadInput(f"--compare {text}: write FIELD=A,B, as in mode=srun-pmix,gloo")
    if looks_secret(name):
        raise BadInput(
            f"--compare {name}: a study keeps the values that it compares, and this name is that of a secret",
            fix=f"give it to all runs: --env {name}",
        )
    field = name if name.isupper() else name.replace("-", "_")
    if not name.isupper() and field not in JobFile.__struct_fields__:
        raise BadInput(
            f"--compare {name}: no option of toolkit launch{near(field, JobFile.__struct_fields__)}",
            fix="a variable of the environment is written in capitals",
        )
    return field, values
