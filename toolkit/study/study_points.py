"""List the runs of a study, and the job of each run (pure functions)."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from toolkit.errors import BadInput
from toolkit.knowledge.trainers import epochs_of
from toolkit.model.jobfile import FIELDS, JobFile
from toolkit.model.study import STUDY_FIELDS, Point, Size, Study

TIMELINE = "timeline.json"
"""The path of Horovod's timeline, relative to the job's folder."""

_NEUTRAL = {"array": "", "sweep": (), "requeue": False, "chain": 0, "elastic": False, "min_nodes": 0}
"""The job fields that toolkit sets to the same value in every job of a study, whatever the user chose."""

_FREE = {field.name for field in FIELDS if field.free}
"""Names of the job fields that do not affect the measured values of a study."""

_PLACES = ("{ranks}", "{nodes}", "{batch}")
"""The placeholders that toolkit replaces in a user's command."""


def sizes(ranks: Iterable[int], nodes: Iterable[int], ranks_per_node: int | None) -> tuple[Size, ...]:
    """Return all requested sizes, sorted by the number of ranks and then by the number of nodes.

    With ``nodes``, the result pairs each number of ranks with each number of nodes. The result leaves out a
    pair if the nodes of this pair would have different numbers of ranks. A node gets at most
    ``ranks_per_node`` ranks. Without ``nodes``, each number of ranks runs on as few nodes as possible, and
    ``ranks_per_node`` defaults to 1.

    Raises:
        BadInput: if the result would contain no size for one of the numbers of ranks.
    """
    wanted, over = sorted(set(ranks)), sorted(set(nodes))
    if not over:
        sizes_of_study = [Size(count, _fewest(count, ranks_per_node or 1)) for count in wanted]
        return tuple(sizes_of_study)
    for count in wanted:
        if not any(_even(count, on, ranks_per_node) for on in over):
            named, most = " or ".join(map(str, over)), ""
            if ranks_per_node is not None:
                ranks_text = f"{ranks_per_node} rank{'s' * (ranks_per_node > 1)}"
                most = f" with at most {ranks_text} on a node (--ranks-per-node)"
            raise BadInput(f"--ranks {count}: cannot be divided evenly among --nodes {named}{most}")
    return tuple(Size(count, on) for count in wanted for on in over if _even(count, on, ranks_per_node))


def _fewest(ranks: int, most_per_node: int) -> int:
    if ranks > most_per_node and ranks % most_per_node:
        raise BadInput(f"--ranks {ranks}: not a multiple of --ranks-per-node {most_per_node}")
    return max(1, ranks // most_per_node)


def _even(ranks: int, nodes: int, most_per_node: int | None) -> bool:
    return (
        ranks >= nodes and ranks % nodes == 0 and (most_per_node is None or ranks // nodes <= most_per_node)
    )


def points(study: Study) -> list[Point]:
    """Return all runs of a study in the order in which toolkit runs them.

    toolkit runs every size once before it runs any size a second time. An hour of heavy load on the cluster
    then affects all sizes equally. Runs that record Horovod's timeline come last. toolkit records no timeline
    for sizes with a single rank.
    """
    series = study.values or ("",)
    timed = [
        Point(series=name, ranks=size.ranks, nodes=size.nodes, number=number)
        for number in range(1, study.repeats + 1)
        for size in study.sizes
        for name in series
    ]
    if not study.profile:
        return timed
    return timed + [
        Point(series=name, ranks=size.ranks, nodes=size.nodes, profile=True)
        for size in study.sizes
        for name in series
        if size.ranks > 1
    ]


def file_name(point: Point) -> str:
    """Return the name that all files of one run share, without the suffix. For example, ``r4-n2-1`` is run 1
    with 4 ranks on 2 nodes.
    """
    series = _in_file_name(point.series)
    run = "timeline" if point.profile else str(point.number)
    return "-".join(filter(None, (series, f"r{point.ranks}", f"n{point.nodes}", run)))


def _in_file_name(series: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "_", series)


def job_fields(study: Study, point: Point) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of the job for one run of a study, and the job's command: the words after ``--``."""
    fields = dict(study.said)
    env = dict(fields.get("env") or {})
    if study.compare.isupper():
        env[study.compare] = point.series
    elif study.compare:
        fields[study.compare] = _value(study.compare, point.series)
    if study.compare == "trainer" and fields.get("data"):
        # The data set of each trainer is in the subfolder of --data with the trainer's name.
        fields["data"] = f"{fields['data']}/{point.series}"
    env |= study.settings.get(point.series, {})
    if point.profile:
        env |= {"HOROVOD_TIMELINE": TIMELINE, "HOROVOD_TIMELINE_MARK_CYCLES": "1"}
    if env:
        fields["env"] = env
    size = {"nodes": point.nodes, "ranks_per_node": point.ranks // point.nodes}
    return {**fields, **_NEUTRAL, **size}, _words(study, point)


def _value(field: str, text: str) -> int | bool | str:
    """Convert a value of ``--compare`` to the type of its job field. Return an invalid value unchanged,
    because toolkit checks the job later.
    """
    kind = _kind(field)
    if kind.startswith("bool"):
        return {"true": True, "false": False}.get(text.lower(), text)
    return int(text) if kind.startswith("int") and text.isdigit() else text


def _kind(field: str) -> str:
    """Return the type of a job field as text, such as ``int | None``, or an empty string for an environment
    variable.
    """
    return str(JobFile.__annotations__.get(field, ""))


def trainer_of(study: Study, point: Point | None = None) -> str:
    """Return the trainer of the run ``point``. Without ``point``, return the first trainer of the study. If
    the study runs a command instead of a trainer, return an empty string.
    """
    if study.compare == "trainer":
        return point.series if point else study.values[0]
    return str(study.said.get("trainer") or "")


def batch_of(study: Study, ranks: int) -> int | None:
    """Return the batch size of each rank in a run with ``ranks`` ranks, or ``None`` if the study sets no
    batch size.

    Raises:
        BadInput: if the batch of all ranks cannot be divided evenly among the ranks.
    """
    if study.batch is None or study.scaling == "weak":
        return study.batch
    if study.batch % ranks:
        raise BadInput(f"--batch {study.batch}: cannot be divided evenly among {ranks} ranks")
    return study.batch // ranks


def check(study: Study) -> None:
    """Check that toolkit can run a study with the options that the user chose.

    Raises:
        BadInput: if the study cannot run; the error names the option to change.
    """
    _check_series(study)
    trainer = trainer_of(study)
    if trainer and study.pattern:
        raise BadInput(
            "--pattern: only for a command after `--`; toolkit's trainers write their metrics to a file; "
            "leave out `--pattern`"
        )
    if not trainer and not study.words:
        raise BadInput(
            "the program is missing; name a trainer, or give a command after --",
            fix="for example: `toolkit scale mnist --ranks 1,2`",
        )
    if not trainer and not study.pattern:
        raise BadInput(
            "--pattern is missing; toolkit needs a pattern to find the measured values in the output",
            fix="for example: `--pattern 'images/sec: ([0-9.]+)'`",
        )
    if not trainer and study.batch is None and any("{batch}" in word for word in study.words):
        raise BadInput(
            "the command contains {batch}, but the study has no batch size",
            fix="give the size: `--batch N`",
        )
    if trainer and any(word.split("=")[0] in {"--epochs", "--batch-size"} for word in study.words):
        raise BadInput(
            "--epochs and --batch-size: not allowed after `--`; give `--epochs` and `--batch` before `--`"
        )
    if trainer and study.scaling == "strong" and study.batch is None:
        raise BadInput("--strong: needs --batch, the total batch size of all ranks")
    if trainer and study.epochs is not None and study.epochs <= study.warm_up:
        raise BadInput(
            f"--epochs {study.epochs}: must be more than --warm-up {study.warm_up}, because the results "
            "ignore the warm-up epochs"
        )
    for size in study.sizes:
        batch_of(study, size.ranks)


def _check_series(study: Study) -> None:
    """Raise ``BadInput`` if a study cannot compare values of the option ``study.compare``, or if two of the
    compared values lead to the same file name.
    """
    name = study.compare
    option = f"--compare {name if name.isupper() else name.replace('_', '-')}"
    if name in STUDY_FIELDS:
        by_nodes = (
            "use `--nodes 1,2`, which makes a curve for each number of nodes" if name == "nodes" else ""
        )
        raise BadInput(f"{option}: toolkit scale sets this option itself in each run", fix=by_nodes)
    if _kind(name).startswith(("tuple", "dict")):
        raise BadInput(
            f"{option}: a value of this option is a list, and toolkit scale compares only single values",
            fix="run a study for each value with `--study DIR`; `toolkit report` shows several studies "
            "together",
        )
    names: dict[str, str] = {}
    for value in study.values:
        first_value = names.setdefault(_in_file_name(value), value)
        if first_value != value:
            raise BadInput(
                f"{option}: the files of {first_value} and {value} would have the same names",
                fix="run a study for each value with `--study DIR`; `toolkit report` shows several studies "
                "together",
            )


def differences(old: Study, new: Study) -> dict[str, tuple[object, object]]:
    """Return the differences that prevent the study ``new`` from resuming the study ``old``: field → (old
    value, new value). Each launch option is a separate field.

    The result leaves out fields that may change when a study resumes. For example, the new study may add
    sizes.
    """
    grows = {
        "schema",
        "name",
        "created",
        "sizes",
        "repeats",
        "values",
        "profile",
        "ssh_config",
        "source",
        "secrets",
    }
    before, now = _as_kept(old), _as_kept(new)
    names = [name for name in dict.fromkeys([*before, *now]) if name not in grows.union(_FREE)]
    return {name: (before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)}


def _as_kept(study: Study) -> dict[str, Any]:
    """Return the fields of a study's JSON file, with the launch options as top-level fields."""
    stored: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(study))
    fields: dict[str, Any] = stored.pop("said")
    return stored | fields


def _epochs(trainer: str, study: Study, ranks: int) -> list[str]:
    """Return the options that make a trainer train the study's number of epochs.

    For a trainer without epochs, return the option ``--iterations``, unless the user gave this option.
    """
    epochs = study.epochs or 1
    kind = epochs_of(trainer)
    if kind == "none":
        has_iterations = any(word.split("=")[0] == "--iterations" for word in study.words)
        return [] if has_iterations else ["--iterations", str(epochs)]
    # If every rank passes over all data, the trainer divides --epochs by the number of ranks.
    # Multiply --epochs by the number of ranks, so that every rank trains the study's number of epochs.
    return ["--epochs", str(epochs if kind == "shared" else epochs * ranks)]


def _words(study: Study, point: Point) -> tuple[str, ...]:
    batch = batch_of(study, point.ranks)
    if trainer := trainer_of(study, point):
        more: list[str] = []
        if study.epochs is not None:
            more += _epochs(trainer, study, point.ranks)
        if batch is not None:
            more += ["--batch-size", str(batch)]
        return (*study.words, *more)
    values = (str(point.ranks), str(point.nodes), str(batch))
    filled = []
    for word in study.words:
        for place, value in zip(_PLACES, values, strict=True):
            word = word.replace(place, value)  # noqa: PLW2901 - one placeholder after the other
        filled.append(word)
    return tuple(filled)
