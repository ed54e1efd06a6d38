"""Read a build file (Dockerfile or definition file) before the build.

toolkit predicts the facts of the image. toolkit also lists the faults of the build file, and the facts of the
image that the build file does not state.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from toolkit.engine.ticket_facts import image_of
from toolkit.files import read_given
from toolkit.image.buildfile.faults import faults
from toolkit.image.buildfile.installed import ListReader, PackageInstall, UnreadList, package_installs
from toolkit.image.buildfile.known import (
    BaseName,
    Distribution,
    base_of,
    buildfiles,
    distribution_named,
    mpi_of_package,
)
from toolkit.image.buildfile.steps import BuildStep, assignments, steps
from toolkit.model.facts import ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.ticket import TicketImage

_LARGEST = 1 << 20
_TITLES = {"cuda": "CUDA", "cudnn": "cuDNN", "tensorflow": "TensorFlow", "pytorch": "PyTorch"}
_MPI_VARIABLES = ("OMPI_", "PMIX_", "PMI_", "MPICH_", "I_MPI_", "UCX_", "FI_")
_FAMILIES = {"openmpi": "Open MPI", "mpich": "MPICH", "intelmpi": "Intel MPI", "mvapich2": "MVAPICH2"}


@dataclass(frozen=True, slots=True)
class FoundMpi:
    """An MPI that a build file installs; ``version`` is empty if toolkit cannot find the version.

    ``order`` is the number of the command that installs the MPI. ``report_line`` is the line about the MPI in
    a report. ``pmix`` is the version of the PMIx library that the MPI uses; empty if unknown.
    """

    name: str
    version: str
    order: int
    report_line: str
    pmix: str = ""


@dataclass(frozen=True, slots=True)
class BuildFile:
    """The predicted facts of a build file's image, and the lines and faults for a report.

    ``notes`` are the report's lines about the base image and about software that the build file installs.
    ``unknown`` are the lines about facts that the build file does not state. ``faults`` are the faults that
    occur on every cluster.
    """

    image: ImageFacts
    notes: tuple[str, ...]
    unknown: tuple[str, ...]
    faults: tuple[Finding, ...]


@dataclass(slots=True)
class _Parts:
    """The facts that toolkit collects while it reads the steps of a build file."""

    name: str
    base: str = ""
    row: BaseName | None = None
    versions: dict[str, str] = field(default_factory=dict)
    distribution: Distribution | None = None
    mpis: list[FoundMpi] = field(default_factory=list)
    packages: dict[str, PackageInstall] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def at(self, line: int) -> str:
        return f"{self.name}:{line}"


def read_buildfile(path: Path) -> BuildFile:
    """Read a build file and the package lists in its folder.

    Raises:
        BadInput: if toolkit cannot read the build file.
    """
    text = read_given(path, limit=_LARGEST).decode("utf-8", "replace")
    return of_text(path.name, text, lambda name: _text_beside(path.parent / Path(name).name))


def of_text(name: str, text: str, read: ListReader = lambda _: None) -> BuildFile:
    """Return the predicted facts, report lines and faults of a build file with the text ``text``. ``read``
    returns the text of the package list with a given name, such as ``requirements.txt``.
    """
    all_steps = steps(name, text)
    last = _last_stages(all_steps)
    parts = _Parts(name)
    for step in (step for step in all_steps if step.stage in last):
        if step.kind == "from":
            _begin(step, parts, all_steps)
    for package in package_installs(tuple(step for step in all_steps if step.stage in last), read):
        if isinstance(package, UnreadList):
            parts.unknown.append(
                f"{parts.at(package.line)}: {package.name}: toolkit found no such file beside the build file"
            )
        else:
            _take(package, parts)
    env = _environment(all_steps, last)
    return BuildFile(
        _facts(parts, env),
        tuple(parts.notes),
        tuple(dict.fromkeys(parts.unknown)),
        tuple(faults(parts.name, parts.mpis, parts.packages, parts.row, parts.versions)),
    )


def _last_stages(all_steps: tuple[BuildStep, ...]) -> set[int]:
    """Return the numbers of the stages whose files are in the image.

    These are the last stage, and all stages from which the last stage gets files, directly or through other
    stages: with ``FROM stage`` or ``COPY --from=stage``.
    """
    starts = [step for step in all_steps if step.kind == "from"]
    if not starts:
        return {0}
    names = {_label(step.text): step.stage for step in starts if _label(step.text)}
    wanted, chosen = [starts[-1].stage], set[int]()
    while wanted:
        stage = wanted.pop()
        if stage in chosen:
            continue
        chosen.add(stage)
        for step in all_steps:
            if step.stage != stage:
                continue
            words = step.text.split()
            below = words[:1] if step.kind == "from" else []
            files = words if step.kind == "copy" else []
            copied = [word.removeprefix("--from=") for word in files if word.startswith("--from=")]
            wanted += [names[n] for n in (*below, *copied) if n in names]
            wanted += [int(n) for n in copied if n.isdecimal() and int(n) < len(starts)]
    return chosen


def _label(text: str) -> str:
    words = text.split()
    return words[words.index("AS") + 1] if "AS" in words[:-1] else words[-1] if "as" in words[:-1] else ""


def _begin(step: BuildStep, parts: _Parts, all_steps: tuple[BuildStep, ...]) -> None:
    """Store the facts of the base image that the ``FROM`` step ``step`` names. In ``parts``, they replace the
    facts of an earlier stage's base image. If the step names an earlier stage and not an
    image, store nothing.
    """
    words = [word for word in step.text.split() if not word.startswith("--")]
    base = words[0] if words else ""
    if base in {_label(step.text) for step in all_steps if step.kind == "from"} or not base:
        return
    parts.base = base
    known = base_of(base)
    if known is None:
        parts.row, parts.versions, parts.distribution = None, {}, None
        parts.unknown.append(f"{parts.at(step.line)}: toolkit does not know the base image {base}")
        return
    parts.row, parts.versions = known
    if parts.row.opaque:
        parts.unknown.append(f"{parts.at(step.line)}: {base}: {parts.row.opaque}")
    release = parts.versions.get("release") or parts.row.release
    parts.distribution = distribution_named(release)
    words = [parts.distribution.title, f"glibc {parts.distribution.glibc}"] if parts.distribution else []
    words += [f"{title} {parts.versions[key]}" for key, title in _TITLES.items() if key in parts.versions]
    if words:
        parts.notes.append(f"{parts.at(step.line)}: FROM {base}: {', '.join(words)}")
    elif not parts.row.musl and not parts.row.opaque:
        parts.unknown.append(f"{parts.at(step.line)}: the distribution of {base}")


def _take(package: PackageInstall, parts: _Parts) -> None:
    source = package.installer == "source"
    mpi = (package.name, package.version) if source else mpi_of_package(package.installer, package.name)
    where = parts.at(package.line)
    if mpi is not None:
        name, version = mpi[0], mpi[1] or package.version or _packaged_version(mpi[0], package, parts)
        family = _FAMILIES[name]
        how = "from its source code" if source else f"{package.installer} package {package.name}"
        if any(known.name == name and known.version == version for known in parts.mpis):
            return
        shown = f"{where}: {family} {version or '?'}, {how}"
        of_apt = package.installer == "apt" and name == "openmpi" and parts.distribution is not None
        pmix = parts.distribution.pmix if of_apt and parts.distribution else ""
        parts.mpis.append(FoundMpi(name, version, package.order, shown, pmix))
        parts.notes.append(parts.mpis[-1].report_line)
        if not version:
            parts.unknown.append(f"{where}: the release of {family}: the file does not pin {package.name}")
    elif package.name in buildfiles().python and package.installer in {"pip", "conda"}:
        parts.packages[buildfiles().python[package.name]] = package
        parts.notes.append(
            f"{where}: {package.name} {package.version or '(not pinned)'}, installed by {package.installer}"
        )
        if not package.version:
            parts.unknown.append(
                f"{where}: the version of {package.name}; the next build may install another version"
            )


def _packaged_version(name: str, package: PackageInstall, parts: _Parts) -> str:
    """Return the version of an MPI that apt installs in the base image's distribution; an empty text if
    unknown.
    """
    if package.installer != "apt" or parts.distribution is None:
        return ""
    return {"openmpi": parts.distribution.openmpi, "mpich": parts.distribution.mpich}.get(name, "")


def _environment(all_steps: tuple[BuildStep, ...], stages: set[int]) -> dict[str, str]:
    env: dict[str, str] = {}
    for step in all_steps:
        if step.stage in stages and step.kind == "env":
            env |= assignments("env", step.text)
    return {name: value for name, value in env.items() if name.startswith(_MPI_VARIABLES)}


def _facts(parts: _Parts, env: dict[str, str]) -> ImageFacts:
    """Return the predicted facts of the image. If neither the build file nor its base image contains a
    component, such as an MPI, the component is absent in the facts. If toolkit does not know the contents of
    the base image, the component is unknown.
    """
    glibc = parts.distribution.glibc if parts.distribution else None
    opaque = bool(parts.row and parts.row.opaque)
    pinned = [mpi for mpi in parts.mpis if mpi.version]
    ticket = TicketImage(glibc=glibc)
    if pinned:
        mpi = pinned[-1]
        ticket = TicketImage(glibc=glibc, mpi=f"{mpi.name} {mpi.version}", pmix=mpi.pmix or None)
    elif not parts.mpis and not opaque and parts.row is not None:
        ticket = TicketImage(glibc=glibc, mpi="none")
    image = image_of(ticket)
    evidence = {"mpi": pinned[-1].report_line} if pinned else {}
    absent = dict(image.absent)
    if "mpi" in absent:
        absent["mpi"] = f"{parts.name} installs no MPI"
    unknown = dict(image.unknown)
    if "mpi" in unknown:
        unknown["mpi"] = f"{parts.name} does not state the name and release of the image's MPI"
    stack_fields: dict[str, Any] = {
        n: parts.versions.get(n) for n in ("tensorflow", "pytorch", "cuda", "python")
    }
    stack_fields |= {name: package.version for name, package in parts.packages.items() if package.version}
    if "horovod" in parts.packages:
        before = any(mpi.order < parts.packages["horovod"].order for mpi in parts.mpis)
        stack_fields["horovod"] = parts.packages["horovod"].version or "0.28.1"
        stack_fields["horovod_built"] = ("mpi", "gloo") if before else ("gloo",)
    absent |= {
        name: f"{parts.name} does not install {name}"
        for name in ("horovod", "pytorch", "jax", "tensorflow", "cuda")
        if stack_fields.get(name) is None and parts.row is not None and not opaque
    }
    return msgspec.structs.replace(
        image,
        path=parts.name,
        distribution=parts.distribution.title if parts.distribution else None,
        evidence={**image.evidence, **evidence},
        absent=absent,
        unknown=unknown,
        environment=env,
        **{name: value for name, value in stack_fields.items() if value is not None},
    )


def _text_beside(path: Path) -> str | None:
    if not path.is_file() or path.is_symlink() or path.stat().st_size > _LARGEST:
        return None
    return path.read_text("utf-8", "replace")


def lines_on(build: BuildFile) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the title and the lines of each section of a report about a build file."""
    if build.notes:
        yield "In the build file", build.notes
    if build.unknown:
        yield "Unknown from the build file", build.unknown
