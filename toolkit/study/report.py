"""Collect the values that a study report shows: the curves, the scaling models that toolkit fitted to the
curves, and the environment of the runs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from toolkit.errors import CheckFailed
from toolkit.model.study import Point, Study
from toolkit.study import folder, limits, proof
from toolkit.study.collect import UNITS
from toolkit.study.fit import Fit, FitCheck
from toolkit.study.fit import check as checked
from toolkit.study.fit import fit as fitted
from toolkit.study.statistics import Curve, curves


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCurve:
    """A curve that a report shows. ``label`` is unique in the report. ``series`` is the label without the
    number of nodes.
    """

    label: str
    series: str
    curve: Curve
    fit: Fit | None
    check: FitCheck | None
    unit: str
    proof: bool = False
    """Whether the curve belongs to a study that tests suggested settings of Horovod. Such a study often has
    only one size. The report then has no sentences about the curve's scaling.
    """

    @property
    def work(self) -> str:
        """The amount of work to which the times of the curve apply: "epoch", or a number of units such as
        "1,000 images" if the study measured only a rate.
        """
        figures = self.curve.base.figures
        return f"{UNITS:,} {self.unit}" if figures.rates and figures.samples is None else "epoch"

    @property
    def sentences(self) -> list[str]:
        if self.proof and len(self.curve.points) == 1:
            return []
        takes = "an epoch takes" if self.work == "epoch" else f"{self.work} take"
        return limits.sentences(self.curve, self.fit, self.check, takes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All values that a report of one or several studies shows."""

    title: str
    lines: tuple[ReportCurve, ...]
    studies: tuple[tuple[str, Study], ...]
    environment: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    failures: tuple[str, ...]
    missing: tuple[str, ...]
    verdicts: tuple[str, ...] = ()
    """Sentences that say whether the suggested settings of Horovod helped, if the study tests such settings.
    """

    @property
    def units(self) -> str:
        units = {line.unit for line in self.lines}
        return units.pop() if len(units) == 1 else "units"

    @property
    def work(self) -> str:
        """The amounts of work to which the times of the curves apply, such as "epoch", joined by "or"."""
        return " or ".join(sorted({line.work for line in self.lines}, reverse=True))


def read(folders: Sequence[Path]) -> Report:
    """Read one or several studies from their folders, and return the report about these studies.

    Raises:
        BadInput: if a folder contains no study.
        CheckFailed: if a study has no measured run.
    """
    names = _names(folders)
    lines: list[ReportCurve] = []
    studies, environment, left_out, missing = [], [], [], []
    verdicts: list[str] = []
    for name, where in zip(names, folders, strict=True):
        study = folder.load(where)
        points = folder.load_points(where, study)
        study_curves = curves(study, points)
        if not study_curves:
            raise CheckFailed(
                f"{where}: the study has no measured run yet",
                fix="resume the study: run the same `toolkit scale` command again",
            )
        lines += [_line(name, study, curve, with_name=len(folders) > 1) for curve in study_curves]
        studies.append((name, study))
        environment.append((name, _environment(study, points)))
        prefix = f"{name}: " if len(folders) > 1 else ""
        left_out += [f"{prefix}{p.title}: {p.why}" for p in points if p.state == "failed"]
        verdicts += [f"{prefix}{text}" for text in proof.verdicts(study, study_curves)]
        missing += [f"{prefix}{p.title}" for p in points if p.state in {"planned", "submitted"}]
    return Report(
        title=", ".join(names),
        lines=tuple(lines),
        studies=tuple(studies),
        environment=tuple(environment),
        failures=tuple(left_out),
        missing=tuple(missing),
        verdicts=tuple(verdicts),
    )


def _names(folders: Sequence[Path]) -> list[str]:
    """Return a unique name for each study. If two studies have the same name, use the names of the folders
    instead of the studies' names. If two folders have the same name, use the paths of the folders.
    """
    names = [folder.load(where).name for where in folders]
    if len(set(names)) == len(names):
        return names
    short = [where.resolve().name for where in folders]
    return short if len(set(short)) == len(short) else [str(where) for where in folders]


def _line(name: str, study: Study, curve: Curve, *, with_name: bool) -> ReportCurve:
    series = ", ".join(filter(None, (name if with_name else "", _series(study, curve.series))))
    return ReportCurve(
        label=", ".join(filter(None, (series, curve.node_label))) or name,
        series=series,
        curve=curve,
        fit=fitted(curve),
        check=checked(curve),
        unit=study.unit,
        proof=bool(study.settings),
    )


def _program(study: Study) -> str:
    if study.compare == "trainer":
        return " and ".join(study.values)
    # Show only the file name of a user's own trainer, because the path of its folder is private.
    return PurePath(str(study.said.get("trainer") or "")).name


def _series(study: Study, label: str) -> str:
    """Return the label of a series. If the label is only a value such as ``64``, put the name of the compared
    option or variable before this value.
    """
    if not label or not study.compare or study.compare in {"strategy", "mode", "trainer"}:
        return label
    name = study.compare if study.compare.isupper() else study.compare.replace("_", " ")
    return f"{name} {label}"


_SCALING = {"weak": "weak: each rank has a full batch", "strong": "strong: the ranks share one batch"}


def _ignored(study: Study) -> str:
    """Return text that says which epochs or measured values of a run the study ignores as warm-up. The text
    is empty if the study ignores none.
    """
    what = "measured value" if study.pattern else "epoch"
    if study.warm_up > 1:
        return f"; the first {study.warm_up} {what}s of each run are ignored"
    return f"; the first {what} of each run is ignored" if study.warm_up else ""


def _environment(study: Study, points: Iterable[Point]) -> tuple[tuple[str, str], ...]:
    known = [point for point in points if point.figures]
    origins = [point.origin for point in known if point.origin]
    figures = [point.figures for point in known if point.figures]
    versions = {f"{name} {version}" for result in figures for name, version in result.versions.items()}
    batches = sorted(
        {f"{p.ranks}: {p.figures.global_batch:,}" for p in known if p.figures and p.figures.global_batch}
    )
    rows = [
        ("source", [study.source]),
        ("command", [" ".join(filter(None, (_program(study), *study.words)))]),
        ("scaling", [_SCALING[study.scaling]]),
        ("batch of all ranks", [", ".join(sorted(batches, key=lambda text: int(text.split(":")[0])))]),
        ("runs of each size", [f"{study.repeats}{_ignored(study)}"]),
        ("measured", [study.created]),
        ("cluster", [origin.place for origin in origins]),
        ("nodes", [origin.nodes for origin in origins]),
        ("threads of a rank", [str(result.threads) for result in figures if result.threads]),
        ("launched by", [f"{origin.launcher} ({origin.mode})" for origin in origins]),
        ("image", [origin.image for origin in origins]),
        ("image digest", [origin.image_digest for origin in origins]),
        ("software", [", ".join(sorted(versions))]),
        ("parameters", [f"{result.parameters:,}" for result in figures if result.parameters]),
        ("samples of an epoch", [f"{result.samples:,}" for result in figures if result.samples]),
    ]
    return tuple(
        (name, "; ".join(dict.fromkeys(filter(None, values)))) for name, values in rows if any(values)
    )
