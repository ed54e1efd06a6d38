"""The doctor's page for a person: host beside image, a verdict a mode, findings, what to type next."""

import shlex
import textwrap
from collections.abc import Callable, Iterator

from toolkit.engine.words import mpi_name, plain
from toolkit.model.facts import HostFacts, HostMpi, ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.prediction import Request, Verdict
from toolkit.probe.group import shown
from toolkit.report.lines import command_lines, wrapped
from toolkit.report.plain import joined
from toolkit.report.ways import ways
from toolkit.versions import parse

Style = Callable[[str, str], str]
"""Puts text into a style: ``good``, ``bad``, ``warn``, ``dim``, ``bold``; plain output has none."""

_SEVERITY_STYLE = {"error": "bad", "warning": "warn", "info": "dim"}
_WIDEST = 100
_NARROWEST = 20
"""As narrow as a column of the table may be."""
_MEMORY = (("shm", "in /dev/shm"), ("locked_memory", "may be locked"))


def unstyled(text: str, style: str) -> str:  # noqa: ARG001 - the signature of Style
    """Leave text as it is, for a file, a pipe and ``NO_COLOR``."""
    return text


def page(
    host: HostFacts,
    image: ImageFacts,
    verdict: Verdict,
    request: Request,
    *,
    next_command: str,
    advice: str = "",
    style: Style = unstyled,
    width: int = _WIDEST,
) -> str:
    """Return the whole page for an image on a host; ``advice`` stands where no command can be given."""
    width = min(width, _WIDEST)
    lines = [*_heading(host, image, request, style, width), "", *side_by_side(host, image, style, width), ""]
    lines += [style("Ways to launch", "bold"), *ways(verdict, host, request, style, width), ""]
    here = tuple(f for f in verdict.findings if _concerns(f, verdict))
    others = tuple(f for f in verdict.findings if f not in here)
    if here:
        lines += [style("Findings", "bold"), *findings(here, style, width)]
    if others:
        lines += [style("Why not the other ways", "bold"), *findings(others, style, width)]
    if advice:
        lines += [style("What would mend it", "bold"), *wrapped(advice, 2, width), ""]
    if next_command:
        lines += [style("Next", "bold"), *command_lines(shlex.split(next_command), 2, width)]
    return joined(lines).rstrip()


def host_page(
    host: HostFacts, found: tuple[Finding, ...], style: Style = unstyled, width: int = _WIDEST
) -> str:
    """Return the page for a host alone."""
    width = min(width, _WIDEST)
    lines = [style(host.place, "bold"), "", *side_by_side(host, None, style, width), ""]
    if found:
        lines += [style("Findings", "bold"), *findings(found, style, width)]
    lines += [style("Next", "bold"), "  toolkit doctor IMAGE"]
    return joined(lines)


def side_by_side(host: HostFacts, image: ImageFacts | None, style: Style, width: int) -> Iterator[str]:
    """Yield the table of what the host and the image have."""
    rows = list(_rows(host, image))
    name_width = max(len(name) for name, _, _ in rows)
    column = (width - name_width - 6) // 2
    if column < _NARROWEST:
        yield from _one_below_the_other(rows, image is not None, style, width)
        return
    yield style(f"  {'':{name_width}}  {'HOST':{column}}  {'IMAGE' if image else ''}".rstrip(), "dim")
    for name, left, right in rows:
        lefts, rights = _cell(left, column), _cell(right, column)
        for number in range(max(len(lefts), len(rights))):
            label = name if number == 0 else ""
            one = lefts[number] if number < len(lefts) else ""
            two = rights[number] if number < len(rights) else ""
            yield f"  {style(f'{label:{name_width}}', 'dim')}  {one:{column}}  {two}".rstrip()


def _one_below_the_other(
    rows: list[tuple[str, str, str]], with_image: bool, style: Style, width: int
) -> Iterator[str]:
    """Yield the same where two columns have no room beside each other."""
    for name, left, right in rows:
        yield f"  {style(name, 'dim')}"
        for side, text in (("host   ", left), ("image  ", right if with_image else "")):
            yield from wrapped(text, 4 + len(side), width, first=f"    {side}", hang=4 + len(side))


def _cell(text: str, column: int) -> list[str]:
    """Return the lines of a cell; a path that is wider is broken, as another column stands beside it."""
    lines = textwrap.wrap(text, column, break_long_words=False, break_on_hyphens=False) or [""]
    return [line[at : at + column] for line in lines for at in range(0, len(line) or 1, column)]


def findings(found: tuple[Finding, ...], style: Style, width: int) -> Iterator[str]:
    """Yield each finding: what is so, the lines that show it, what mends it; what lacks facts in one."""
    undecided = [f for f in found if f.undecided and f.severity == "info"]
    for finding in (f for f in found if f not in undecided):
        yield from _head(finding, style, width)
        yield from wrapped(finding.title, 11, width)
        for line in finding.evidence:
            yield from (style(part, "dim") for part in wrapped(line, 13, width, first="· "))
        yield from wrapped(finding.fix, 16, width, first="fix: ", hang=5)
        yield ""
    if undecided:
        head = style("info    ", "dim")
        yield f"  {head} not decided, as facts are missing"
        yield from wrapped(", ".join(finding.id for finding in undecided), 11, width)
        for line in dict.fromkeys(line for finding in undecided for line in finding.evidence):
            yield from (style(part, "dim") for part in wrapped(line, 13, width, first="· "))
        yield ""


def _head(finding: Finding, style: Style, width: int) -> Iterator[str]:
    """Yield severity, id and the modes that a finding is about, which take a line of their own if need be."""
    head = (
        f"  {style(f'{finding.severity:8}', _SEVERITY_STYLE[finding.severity])} {style(finding.id, 'bold')}"
    )
    modes = f"({', '.join(finding.modes)})" if finding.modes else ""
    if 11 + len(finding.id) + 2 + len(modes) <= width:
        yield f"{head}{style(f'  {modes}', 'dim')}" if modes else head
        return
    yield head
    yield from (style(line, "dim") for line in wrapped(modes, 11, width))


def _concerns(finding: Finding, verdict: Verdict) -> bool:
    """Tell whether a finding is about the chosen way; about any, where none is chosen."""
    return verdict.chosen is None or not finding.modes or verdict.chosen in finding.modes


def _heading(host: HostFacts, image: ImageFacts, request: Request, style: Style, width: int) -> Iterator[str]:
    name = image.path.rpartition("/")[2] or image.path
    nodes = f"{request.nodes} node{'s' if request.nodes > 1 else ''}"
    ranks = f"{request.ranks_per_node} rank{'s' if request.ranks_per_node > 1 else ''}"
    shape = f"{nodes} \N{MULTIPLICATION SIGN} {ranks}"
    if len(f"{name} on {host.place}, {shape}") <= width:
        yield f"{style(name, 'bold')} on {style(host.place, 'bold')}, {shape}"
        return
    yield from (style(line, "bold") for line in wrapped(f"{name} on {host.place}, {shape}", 0, width))


def _pmix(host: HostFacts, first: HostMpi | None) -> str:
    """Say which PMIx Slurm serves, and mpirun where that is of another release."""
    slurms = _known(host, "pmix", plain(host.pmix) if host.pmix else None)
    own = parse(first.pmix) if first and first.pmix else None
    served = parse(host.pmix) if host.pmix else None
    # Debian's PMIx 5.0.7 calls itself 5.0.7a1.
    if own is None or (served is not None and own.release == served.release):
        return slurms
    return f"{slurms}; mpirun serves {own}"


def _rows(host: HostFacts, image: ImageFacts | None) -> Iterator[tuple[str, str, str]]:
    slurm, runtime = host.slurm, host.runtime
    first = host.mpis[0] if host.mpis else None
    yield (
        "system",
        _words(host.distribution, host.architecture) or _none(host, "distribution"),
        _words(image.distribution, image.architecture) if image else "",
    )
    yield ("C library", _known(host, "glibc", host.glibc, "glibc "), _image(image, "glibc", "glibc "))
    yield (
        "MPI",
        f"{mpi_name(first)}, {first.launcher}" if first else _none(host, "mpis", empty=host.mpis == ()),
        _image_mpi(image),
    )
    yield ("PMIx", _pmix(host, first), _image(image, "pmix"))
    offered = " ".join((slurm.mpi_types if slurm else None) or ())
    yield ("launch", f"srun offers {offered}" if offered else _none(host, "slurm"), _speaks(image))
    default = f", {slurm.nodes} nodes, MpiDefault {slurm.mpi_default}" if slurm and slurm.nodes else ""
    yield ("Slurm", f"{slurm.version}{default}" if slurm else _none(host, "slurm"), "")
    form = (
        f"{image.format}, {'made by toolkit' if image.stack else 'says nothing of itself'}" if image else ""
    )
    yield ("container", _runtime(host) if runtime else _none(host, "runtime"), form)
    yield ("GPU", _gpus(host), "")
    yield ("network", _network(host), "")
    yield ("memory", _words(*(f"{shown(host, n)} {what}" for n, what in _MEMORY)), "")
    if learning := _learning(image):
        yield ("Python", "", learning)


def _gpus(host: HostFacts) -> str:
    times = "\N{MULTIPLICATION SIGN}"
    amd = f"{len(host.amd_gpus)} {times} AMD {host.amd_gpus[0]}" if host.amd_gpus else ""
    if amd and not host.gpu_driver:
        return amd
    gpus = f"{len(host.gpus)} {times} {host.gpus[0]}" if host.gpus else ""
    return ", ".join(filter(None, (_known(host, "gpu_driver", host.gpu_driver, "NVIDIA driver "), gpus, amd)))


def _network(host: HostFacts) -> str:
    known = [names for names in (host.fabrics, host.infiniband, host.interfaces) if names is not None]
    return " ".join(name for names in known for name in names) or _none(host, "interfaces", empty=bool(known))


def _runtime(host: HostFacts) -> str:
    runtime = host.runtime
    if runtime is None:
        return ""
    how = {True: "setuid", False: "unprivileged", None: "setuid not known"}[runtime.setuid]
    spaces = {True: "user namespaces work", False: "no user namespaces", None: ""}[host.user_namespaces]
    return ", ".join(part for part in (f"{runtime.name.capitalize()} {runtime.version}", how, spaces) if part)


def _image_mpi(image: ImageFacts | None) -> str:
    if image is None:
        return ""
    if image.mpi is None:
        return _none(image, "mpi")
    others = f" (and {', '.join(mpi_name(m) for m in image.other_mpis)})" if image.other_mpis else ""
    return f"{mpi_name(image.mpi)}{others}"


def _speaks(image: ImageFacts | None) -> str:
    mpi = image.mpi if image else None
    if mpi is None or mpi.interfaces is None:
        return ""
    launcher = f"; {mpi.launcher}" if mpi.launcher else "; no mpirun"
    return f"speaks {' '.join(mpi.interfaces) or 'nothing'}{launcher}"


def _learning(image: ImageFacts | None) -> str:
    if image is None:
        return ""
    named = (
        ("TensorFlow", image.tensorflow),
        ("PyTorch", image.pytorch),
        ("JAX", image.jax),
        ("Horovod", image.horovod),
        ("mpi4py", image.mpi4py),
        ("Python", image.python),
    )
    return ", ".join(f"{name} {version}" for name, version in named if version)


def _words(*parts: str | None) -> str:
    return ", ".join(p for p in parts if p)


def _known(facts: HostFacts | ImageFacts, name: str, value: str | None, before: str = "") -> str:
    return f"{before}{value}" if value else _none(facts, name)


def _image(image: ImageFacts | None, name: str, before: str = "") -> str:
    if image is None:
        return ""
    value = getattr(image, name)
    return _known(image, name, plain(value) if value else None, before)


def _none(facts: HostFacts | ImageFacts, name: str, *, empty: bool = False) -> str:
    return "none" if empty or name in facts.absent else "not known"
