"""Compare stack.json, an image's description of itself, with the image's real contents."""

from dataclasses import dataclass

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree
from toolkit.model.facts import ImageFacts
from toolkit.model.stack import STACK_PATH, Stack
from toolkit.versions import is_same_version, upstream

_LABELS = "/.singularity.d/labels.json"
_MOST = 1 << 20
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class ComparedVersions:
    """Values in the image to compare with stack.json. A value is None if toolkit cannot read it, and empty if
    the image has no such value.
    """

    numpy: str | None = None
    hwloc: str | None = None
    operations: frozenset[str] | None = None


def labels(tree: FileTree) -> dict[str, str]:
    """Return the labels of an image; empty if the image has no labels or its labels are invalid."""
    content, _ = _json(tree, _LABELS)
    values = content.items() if isinstance(content, dict) else ()
    return {str(k): str(v) for k, v in values if isinstance(v, str | int | float)}


def stack(tree: FileTree) -> tuple[dict[str, object] | None, str]:
    """Return the content of stack.json, or None and the reason why toolkit cannot read it.

    The reason is empty if the image has no stack.json.
    """
    content, why = _json(tree, STACK_PATH)
    if isinstance(content, dict):
        return content, ""
    return None, why or (f"{STACK_PATH}: not an object" if files.is_file(tree, STACK_PATH) else "")


def disagreements(facts: ImageFacts, also: ComparedVersions) -> tuple[str, ...]:
    """Return a message for each value in stack.json that differs from the value that toolkit found in the
    image.
    """
    if facts.stack is None:
        return ()
    try:
        stack = msgspec.convert(facts.stack, Stack)
    except msgspec.ValidationError as error:
        return (f"{STACK_PATH} cannot be read as a stack: {error}",)
    mpi = facts.mpi
    versions = {
        "mpi": mpi.implementation if mpi else "",
        "mpi_version": (mpi.version if mpi else "") or "",
        "pmix": facts.pmix,
        "ucx": facts.ucx,
        "glibc": facts.glibc,
        "python": facts.python,
        "architecture": facts.architecture,
        "tensorflow": facts.tensorflow,
        "horovod": facts.horovod,
        "mpi4py": facts.mpi4py,
    }
    pairs = [(n, getattr(stack, n), v or "") for n, v in versions.items() if not _unread(n, facts)]
    pairs += [("numpy", stack.numpy, also.numpy)] if also.numpy is not None else []
    pairs += [("hwloc", stack.hwloc, also.hwloc)] if also.hwloc is not None else []
    lines = [_line(name, a, b) for name, a, b in pairs if not _agree(name, a[:_LONGEST], b)]
    return (*lines, *_distribution(stack, facts), *_operations(stack, also))


def _unread(name: str, facts: ImageFacts) -> bool:
    return name in facts.unknown or f"mpi.{name.removeprefix('mpi_')}" in facts.unknown


def _agree(name: str, described: str, actual: str) -> bool:
    if name == "python" and actual.count(".") == 1:
        # toolkit may know only the minor release of a Python outside a virtual environment.
        return described == actual or described.startswith(f"{actual}.")
    return described == actual or (bool(described and actual) and is_same_version(described, actual))


def _line(name: str, described: str, actual: str) -> str:
    return (
        f"stack.json says {name} {described[:_LONGEST] or 'is not there'}; "
        f"toolkit found {upstream(actual) if actual else 'none'}"
    )


def _distribution(stack: Stack, facts: ImageFacts) -> list[str]:
    if facts.distribution is None:
        return []
    # os-release also contains the code name of the release, which stack.json omits.
    actual = facts.distribution.partition(" (")[0]
    return [] if stack.distribution == actual else [_line("distribution", stack.distribution, actual)]


def _operations(stack: Stack, also: ComparedVersions) -> list[str]:
    """Return a message for users if stack.json and Horovod's library list different operations (MPI, Gloo,
    NCCL); otherwise return an empty list.
    """
    if also.operations is None:
        return []
    listed = {o for o in stack.horovod_operations if o in {"mpi", "gloo", "nccl"}}
    if listed == also.operations:
        return []
    return [_line("horovod_operations", " ".join(sorted(listed)), " ".join(sorted(also.operations)))]


def _json(tree: FileTree, path: str) -> tuple[object, str]:
    """Return the JSON value in a file, or an error text; both are empty if the file does not exist."""
    content = files.read(tree, path, _MOST)
    if content is None:
        return None, ""
    try:
        value: object = msgspec.json.decode(content)
        # Encode the value too, because msgspec decodes values that are nested too deeply for its encoder.
        msgspec.json.encode(value)
    except DECODE_ERRORS as error:
        return None, f"{path}: not valid JSON: {error}"
    return value, ""
