"""Format the contents of an image for ``toolkit image inspect``."""

from collections.abc import Iterator

from toolkit.engine.words import mpi_name, plain
from toolkit.model.facts import ImageFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.report.lines import wrap_hanging

_TELLING = ("pmix", "pml", "mtl", "btl")
"""The Open MPI frameworks whose components the page shows. These components connect the ranks and send their
messages.
"""


def lines(facts: ImageFacts, width: int | None = None) -> Iterator[str]:
    """Yield one line for each fact of an image, wrapped to ``width`` columns.

    For an unknown fact, the line says why the fact is unknown. For software that the image lacks, the line
    has the value ``-``, or there is no line.
    """
    for name, value in _rows(facts):
        yield from wrap_hanging(f"{name:<13} ", value, width)
    for line in facts.disagreements:
        yield from wrap_hanging("disagreement: ", line, width)


def _rows(facts: ImageFacts) -> Iterator[tuple[str, str]]:
    yield "image", f"{facts.path} ({facts.format})"
    for name in ("digest", "architecture", "distribution", "glibc"):
        yield name, _value(facts, name)
    if needs := _words(_with("glibc", facts.glibc_needed), facts.cpu_level):
        yield "needs", needs
    yield "mpi", _mpi(facts.mpi) if facts.mpi else _value(facts, "mpi")
    if facts.mpi:
        yield from _launch_rows(facts, facts.mpi)
    for mpi in facts.other_mpis:
        yield "other mpi", _mpi(mpi)
    yield from _carrying(facts)
    yield from _learning(facts)
    yield "stack.json", f"recipe {facts.stack.get('recipe')}" if facts.stack else "not in the image"


def _carrying(facts: ImageFacts) -> Iterator[tuple[str, str]]:
    yield "pmix", _value(facts, "pmix")
    fabric = (
        _with("UCX", _number(facts.ucx), facts.ucx_transports),
        _with("libfabric", _number(facts.libfabric_version), facts.libfabric_providers),
    )
    if shown := "; ".join(part for part in fabric if part):
        yield "fabric", shown
    if facts.verbs_providers:
        yield "verbs", " ".join(facts.verbs_providers)


def _learning(facts: ImageFacts) -> Iterator[tuple[str, str]]:
    yield "python", _value(facts, "python")
    if facts.tensorflow or "tensorflow" in facts.unknown:
        yield "tensorflow", _built(_value(facts, "tensorflow"), facts.tensorflow_cuda)
    if facts.pytorch:
        yield "pytorch", _built(facts.pytorch, facts.pytorch_cuda)
    if facts.horovod:
        yield (
            "horovod",
            _with(facts.horovod, "with", (*(facts.horovod_built or ()), *(facts.horovod_frameworks or ()))),
        )
    if facts.mpi4py:
        yield "mpi4py", facts.mpi4py
    if cuda := _words(
        _with("CUDA", facts.cuda),
        _with("cuDNN", facts.cudnn),
        _with("NCCL", facts.nccl, ("with aws-ofi-nccl",) if facts.nccl_ofi else ()),
        _with("cuda-compat", facts.cuda_compat),
    ):
        yield "cuda", cuda


def _launch_rows(facts: ImageFacts, mpi: ImageMpi) -> Iterator[tuple[str, str]]:
    if mpi.interfaces is None:
        yield "supports", facts.unknown.get("mpi.interfaces", "-")
    else:
        how = [f"{face} ({mpi.how[face]})" if face in mpi.how else face for face in mpi.interfaces]
        yield "supports", ", ".join(how) or "neither PMI nor PMIx"
    yield "launcher", mpi.launcher or "-"
    shown = [f"{k} {' '.join(v)}" for k in _TELLING if (v := mpi.components.get(k))]
    if text := mpi.device or "; ".join(shown):
        yield "device" if mpi.device else "components", text
    if mpi.lacks:
        yield "lacks", " ".join(mpi.lacks)


def _mpi(mpi: ImageMpi) -> str:
    return f"{mpi_name(mpi)} ({mpi.library})"


def _value(facts: ImageFacts, name: str) -> str:
    value = getattr(facts, name)
    return str(value) if value is not None else facts.unknown.get(name, "-")


def _number(version: str | None) -> str | None:
    return plain(version) if version else None


def _with(name: str, value: str | None, names: tuple[str, ...] | None = None) -> str:
    return " ".join((name, value, *(names or ()))) if value else ""


def _built(version: str, cuda: str | None) -> str:
    return f"{version}, for CUDA {cuda}" if cuda else version


def _words(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)
