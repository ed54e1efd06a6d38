"""Format the software of the host and of the image, as a table with two columns or as two lines."""

import textwrap
from collections.abc import Iterator

from toolkit.engine.words import mpi_name, plain, runtime_name
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import HostMpi
from toolkit.probe.group import format_field
from toolkit.report.lines import Style, wrap_text
from toolkit.versions import parse

_NARROWEST = 20
"""The minimum width of a column of the table, in characters."""
_TIED = "\N{NO-BREAK SPACE}"
_MEMORY = (("shm", "in /dev/shm"), ("locked_memory", "may be locked"))


def side_by_side(host: HostFacts, image: ImageFacts | None, style: Style, width: int) -> Iterator[str]:
    """Yield the lines of a table with the software of the host and the image. If ``image`` is ``None``, the
    table shows only the host.
    """
    rows = list(_rows(host, image))
    name_width = max(len(name) for name, _, _ in rows)
    column = (width - name_width - 6) // 2
    if column < _NARROWEST:
        yield from _one_below_the_other(rows, image is not None, style, width)
        return
    yield style(f"  {'':{name_width}}  {'HOST':{column}}  {'IMAGE' if image else ''}".rstrip(), "dim")
    for row in rows:
        yield from _row_lines(row, name_width, column, style, width)


def _row_lines(
    row: tuple[str, str, str], name_width: int, column: int, style: Style, width: int
) -> Iterator[str]:
    """Yield the lines of one table row.

    If a word is wider than its column, the row has separate lines for the host and for the image.
    """
    name, left, right = row
    label = f"  {style(f'{name:{name_width}}', 'dim')}  "
    indent = name_width + 4
    if max(map(len, (*left.split(), *right.split())), default=0) > column:
        for side, text in (("host: ", left), ("image: ", right)):
            for line in (
                wrap_text(text, indent + len(side), width, prefix=side, outdent=len(side)) if text else ()
            ):
                yield f"{label}{line[indent:]}"
                label = " " * indent
        return
    lefts, rights = (textwrap.wrap(text, column, break_on_hyphens=False) or [""] for text in (left, right))
    for number in range(max(len(lefts), len(rights))):
        left_text = lefts[number] if number < len(lefts) else ""
        two = rights[number] if number < len(rights) else ""
        yield f"{label}{left_text:{column}}  {two}".rstrip()
        label = " " * indent


def _one_below_the_other(
    rows: list[tuple[str, str, str]], with_image: bool, style: Style, width: int
) -> Iterator[str]:
    """Yield the rows of the table in one column, for a page that is too narrow for two columns."""
    for name, left, right in rows:
        yield f"  {style(name, 'dim')}"
        for side, text in (("host   ", left), ("image  ", right if with_image else "")):
            yield from wrap_text(text, 4 + len(side), width, prefix=f"    {side}", outdent=4 + len(side))


def in_short(host: HostFacts, image: ImageFacts, style: Style, width: int) -> Iterator[str]:
    """Yield one line about the host and one line about the image, with only the most important software."""
    slurm, runtime = host.slurm, host.runtime
    first = host.mpis[0] if host.mpis else None
    host_parts = (
        f"Slurm {slurm.version}" if slurm else "",
        f"PMIx {plain(host.pmix)}" if host.pmix else "",
        mpi_name(first) if first else "",
        f"{runtime_name(runtime.name)} {runtime.version}" if runtime else "",
        _gpus(host) if host.gpus or host.amd_gpus else "",
    )
    mpi = image.mpi
    inside = (mpi_name(mpi) if mpi else _no_mpi(image), _learning(image))
    for label, parts in (("host   ", host_parts), ("image  ", inside)):
        # Keep the name of a program and its version on the same line.
        tied = ", ".join(part.replace(" ", _TIED) for part in _words(*parts).split(", "))
        wrapped = wrap_text(tied or "nothing known", 2 + len(label), width, prefix=label, outdent=len(label))
        lines = [line.replace(_TIED, " ") for line in wrapped]
        yield f"  {style(label, 'dim')}{lines[0][2 + len(label) :]}"
        yield from lines[1:]


def _no_mpi(image: ImageFacts) -> str:
    return "no MPI" if "mpi" in image.absent else "MPI not known"


def _pmix(host: HostFacts, host_mpi: HostMpi | None) -> str:
    """Return Slurm's PMIx release. If the PMIx release of ``host_mpi`` (the host's mpirun) differs, return
    both releases.
    """
    slurms = _value_or_unknown(host, "pmix", plain(host.pmix) if host.pmix else None)
    own = parse(host_mpi.pmix) if host_mpi and host_mpi.pmix else None
    served = parse(host.pmix) if host.pmix else None
    # Compare only release numbers, without suffixes such as a1.
    # Debian's library of PMIx 5.0.7 reports the version 5.0.7a1.
    if own is None or (served is not None and own.release == served.release):
        return slurms
    return f"{slurms}; mpirun offers {own}"


def _rows(host: HostFacts, image: ImageFacts | None) -> Iterator[tuple[str, str, str]]:
    slurm, runtime = host.slurm, host.runtime
    first = host.mpis[0] if host.mpis else None
    yield (
        "system",
        _words(host.distribution, host.architecture) or _none_or_unknown(host, "distribution"),
        _words(image.distribution, image.architecture) if image else "",
    )
    yield (
        "C library",
        _value_or_unknown(host, "glibc", host.glibc, "glibc "),
        _image(image, "glibc", "glibc "),
    )
    yield (
        "MPI",
        f"{mpi_name(first)}, {first.launcher}"
        if first
        else _none_or_unknown(host, "mpis", empty=host.mpis == ()),
        _image_mpi(image),
    )
    yield ("PMIx", _pmix(host, first), _image(image, "pmix"))
    offered = " ".join((slurm.mpi_types if slurm else None) or ())
    yield ("launch", f"srun offers {offered}" if offered else _none_or_unknown(host, "slurm"), _speaks(image))
    default = f", {slurm.nodes} nodes, MpiDefault {slurm.mpi_default}" if slurm and slurm.nodes else ""
    yield ("Slurm", f"{slurm.version}{default}" if slurm else _none_or_unknown(host, "slurm"), "")
    form = f"{image.format}, {'made by toolkit' if image.stack else 'without stack.json'}" if image else ""
    yield ("container", _runtime(host) if runtime else _none_or_unknown(host, "runtime"), form)
    yield ("GPU", _gpus(host), "")
    yield ("network", _network(host), "")
    yield ("memory", _words(*(f"{format_field(host, n)} {what}" for n, what in _MEMORY)), "")
    if learning := _learning(image):
        yield ("Python", "", learning)


def _gpus(host: HostFacts) -> str:
    times = "\N{MULTIPLICATION SIGN}"
    amd = f"{len(host.amd_gpus)} {times} AMD {host.amd_gpus[0]}" if host.amd_gpus else ""
    if amd and not host.gpu_driver:
        return amd
    gpus = f"{len(host.gpus)} {times} {host.gpus[0]}" if host.gpus else ""
    return ", ".join(
        filter(None, (_value_or_unknown(host, "gpu_driver", host.gpu_driver, "NVIDIA driver "), gpus, amd))
    )


def _network(host: HostFacts) -> str:
    known = [names for names in (host.fabrics, host.infiniband, host.interfaces) if names is not None]
    return " ".join(name for names in known for name in names) or _none_or_unknown(
        host, "interfaces", empty=bool(known)
    )


def _runtime(host: HostFacts) -> str:
    runtime = host.runtime
    if runtime is None:
        return ""
    how = {True: "setuid", False: "unprivileged", None: "setuid not known"}[runtime.setuid]
    spaces = {True: "user namespaces work", False: "no user namespaces", None: ""}[host.user_namespaces]
    return ", ".join(
        part for part in (f"{runtime_name(runtime.name)} {runtime.version}", how, spaces) if part
    )


def _image_mpi(image: ImageFacts | None) -> str:
    if image is None:
        return ""
    if image.mpi is None:
        return _none_or_unknown(image, "mpi")
    other_mpis = f" (and {', '.join(mpi_name(m) for m in image.other_mpis)})" if image.other_mpis else ""
    return f"{mpi_name(image.mpi)}{other_mpis}"


def _speaks(image: ImageFacts | None) -> str:
    mpi = image.mpi if image else None
    if mpi is None or mpi.interfaces is None:
        return ""
    launcher = f"; {mpi.launcher}" if mpi.launcher else "; no mpirun"
    return f"supports {' '.join(mpi.interfaces) or 'nothing'}{launcher}"


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


def _value_or_unknown(facts: HostFacts | ImageFacts, name: str, value: str | None, prefix: str = "") -> str:
    return f"{prefix}{value}" if value else _none_or_unknown(facts, name)


def _image(image: ImageFacts | None, name: str, prefix: str = "") -> str:
    if image is None:
        return ""
    value = getattr(image, name)
    return _value_or_unknown(image, name, plain(value) if value else None, prefix)


def _none_or_unknown(facts: HostFacts | ImageFacts, name: str, *, empty: bool = False) -> str:
    return "none" if empty or name in facts.absent else "not known"
