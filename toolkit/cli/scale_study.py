"""Make a study out of what a person asks for, join it with what is there, and show its runs."""

import datetime as dt
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from toolkit.cli.layering import asked
from toolkit.cli.prepare import Flags, check_words
from toolkit.errors import BadInput, CheckFailed
from toolkit.knowledge.strict import near
from toolkit.launch.specify import name_of
from toolkit.model.jobfile import JobFile
from toolkit.model.study import Scaling, Study
from toolkit.report.table import table
from toolkit.study import collect, folder, proof, sweep
from toolkit.study.advice import advise
from toolkit.study.timeline import tallied
from toolkit.study.timeline_file import events

_MEASURED = 2
"""Epochs that count, where nobody says how many there are to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
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


def study_of(wanted: Wanted) -> Study:
    """Return the study, after looking at every run that it has.

    Raises:
        BadInput: naming the option that cannot be.
    """
    compare, values = _compared(wanted.compare)
    settings = _proved(wanted)
    trainer = wanted.said.get("trainer") or compare == "trainer"
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
        said=dict(wanted.said),
        words=wanted.words,
        host=wanted.host,
        cluster=wanted.cluster,
        ssh_config=str(wanted.ssh_config.resolve()) if wanted.ssh_config else None,
    )
    sweep.check(study)
    if study.pattern:
        collect.compiled(study.pattern)
    made = [asked(*sweep.asked_of(study, point)) for point in sweep.points(study)]
    for one in made:
        check_words(one, Flags())
    name = "-".join(values) if compare == "trainer" else name_of(made[0].job)
    return msgspec.structs.replace(study, name=name)


def joined(where: Path, study: Study) -> Study:
    """Return a study together with the one that its folder holds already, which it may only make larger.

    Raises:
        BadInput: if the folder holds another one.
    """
    if not folder.is_study(where):
        return study
    old = folder.load(where)
    if differs := sweep.differences(old, study):
        raise BadInput(
            f"{where} holds another study: it differs in {', '.join(differs)}",
            fix="name another folder with --study",
            detail=[f"{name}: {before!r} there, {now!r} now" for name, (before, now) in differs.items()],
        )
    return msgspec.structs.replace(
        old,
        sizes=tuple(sorted({*old.sizes, *study.sizes})),
        repeats=max(old.repeats, study.repeats),
        values=tuple(dict.fromkeys((*old.values, *study.values))),
        profile=old.profile or study.profile,
        ssh_config=study.ssh_config,
    )


def print_runs(where: Path, study: Study) -> None:
    """Show what would be run, and what is there already; nothing is changed."""
    study = joined(where, study)
    rows = []
    for number, point in enumerate(folder.load_points(where, study), 1):
        _, words = sweep.asked_of(study, point)
        what = list(filter(None, [sweep.trainer_of(study, point)]))
        rows.append((number, point.title, point.state, shlex.join([*what, *words])))
    click.echo(table(("", "run", "state", "what"), rows))
    click.echo(f"\n{len(rows)} runs, {study.scaling} scaling; the study is kept in {where}")


def _proved(wanted: Wanted) -> dict[str, dict[str, str]]:
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
    field = name if name.isupper() else name.replace("-", "_")
    if not name.isupper() and field not in JobFile.__struct_fields__:
        raise BadInput(
            f"--compare {name}: no option of toolkit launch{near(field, JobFile.__struct_fields__)}",
            fix="a variable of the environment is written in capitals",
        )
    return field, values
