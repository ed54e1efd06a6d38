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
    """Values from the image's files. toolkit compares them, and the image's facts, with stack.json.

    ``numpy`` and ``hwloc`` are versions. ``operations`` are the libraries that Horovod uses: ``mpi``,
    ``gloo``, ``nccl``. A value is None if toolkit cannot read the value. A value is empty if the image lacks
    this software.
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
    """Return the content of stack.json, and an empty text.

    If toolkit cannot read stack.json, return None and the reason. If the image has no stack.json, return None
    and an empty text.
    """
    content, why = _json(tree, STACK_PATH)
    if isinstance(content, dict):
        return content, ""
    return None, why or (f"{STACK_PATH}: not a JSON object" if files.is_file(tree, STACK_PATH) else "")


def disagreements(facts: ImageFacts, image_values: ComparedVersions) -> tuple[str, ...]:
    """Return a message for each value in stack.json that differs from the image's real value.

    ``facts`` and ``image_values`` contain the real values, which toolkit read from the image's other files.
    """
    if facts.stack is None:
        return ()
    try:
        stack = msgspec.convert(facts.stack, Stack)
    except msgspec.ValidationError as error:
        return (f"{STACK_PATH} cannot be read: {error}",)
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
    pairs += [("numpy", stack.numpy, image_values.numpy)] if image_values.numpy is not None else []
    pairs += [("hwloc", stack.hwloc, image_values.hwloc)] if image_values.hwloc is not None else []
    lines = [_line(name, a, b) for name, a, b in pairs if not _agree(name, a[:_LONGEST], b)]
    return (*lines, *_distribution(stack, facts), *_operations(stack, image_values))


def _unread(name: str, facts: ImageFacts) -> bool:
    return name in facts.unknown or f"mpi.{name.removeprefix('mpi_')}" in facts.unknown


def _agree(name: str, stack_value: str, image_value: str) -> bool:
    if name == "python" and image_value.count(".") == 1:
        # toolkit may know only the minor release, such as 3.11, so compare only the minor releases.
        return stack_value == image_value or stack_value.startswith(f"{image_value}.")
    return stack_value == image_value or (
        bool(stack_value and image_value) and is_same_version(stack_value, image_value)
    )


def _line(name: str, stack_value: str, image_value: str) -> str:
    return (
        f"stack.json says {name} {stack_value[:_LONGEST] or 'is absent'}; "
        f"toolkit found {upstream(image_value) if image_value else 'none'}"
    )


def _distribution(stack: Stack, facts: ImageFacts) -> list[str]:
    if facts.distribution is None:
        return []
    # The fact ends with the code name from os-release, such as "(bookworm)"; stack.json has no code name.
    actual = facts.distribution.partition(" (")[0]
    return [] if stack.distribution == actual else [_line("distribution", stack.distribution, actual)]


def _operations(stack: Stack, image_values: ComparedVersions) -> list[str]:
    """Compare the libraries (MPI, Gloo and NCCL) that Horovod uses in the image with the libraries in
    stack.json. Return a list with one message if they differ.

    The list is empty if they agree, or if toolkit cannot read Horovod's libraries in the image.
    """
    if image_values.operations is None:
        return []
    listed = {o for o in stack.horovod_operations if o in {"mpi", "gloo", "nccl"}}
    if listed == image_values.operations:
        return []
    return [_line("horovod_operations", " ".join(sorted(listed)), " ".join(sorted(image_values.operations)))]


def _json(tree: FileTree, path: str) -> tuple[object, str]:
    """Return the JSON value in a file, and an empty text. If the file is not valid JSON, return None and an
    error message. If the file does not exist, return None and an empty text.
    """
    content = files.read(tree, path, _MOST)
    if content is None:
        return None, ""
    try:
        value: object = msgspec.json.decode(content)
        # msgspec can decode values that it cannot encode, because they are nested too deeply. Report such a
        # value here.
        msgspec.json.encode(value)
    except DECODE_ERRORS as error:
        return None, f"{path}: not valid JSON: {error}"
    return value, ""
