"""List the build steps of a lock, with their files and dependencies (pure functions)."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from toolkit.data import shipped_folder
from toolkit.model.lock import PYTHON_PACKAGES, CompiledComponent, Lock, LockedFile, LockedStep

PREFIX = "/opt/mpi"
"""The installation prefix of a compiled MPI and of its dependencies in the image."""

_COMMON = ("packages.sh", "compile.sh", "python.sh")
_NCCL = frozenset({"nccl"})
_STRIP = ("binutils", "libbinutils", "libctf", "libctf-nobfd0", "libgprofng0", "libjansson4", "libsframe1")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A build step: compile one component from the archive ``source``.

    ``after`` are the components that toolkit must compile before this component.
    ``wheels`` are the image's wheels against which the step compiles. ``requirements`` are these wheels and
    the wheels of Python build tools. ``parts`` are the component's scripts in ``containers/parts``. ``extra``
    are further archives that these scripts unpack. ``words`` are the path of the compile script and its
    arguments. ``patches`` maps the file name of each patch to the patch's SHA-256.
    """

    component: CompiledComponent
    source: LockedFile
    after: tuple[CompiledComponent, ...]
    wheels: tuple[LockedFile, ...]
    requirements: tuple[LockedFile, ...]
    parts: tuple[str, ...]
    words: tuple[str, ...]
    extra: tuple[LockedFile, ...] = ()
    patches: dict[str, str] = {}


def steps_of(lock: Lock) -> tuple[Step, ...]:
    """Return the build steps of a lock, in the order in which toolkit runs them."""
    return tuple(_step(step, lock) for step in lock.steps)


def output_of(step: Step) -> str:
    """Return a shell pattern for the file name of a step's result, a wheel or a tar archive."""
    return f"{step.component}-*.whl" if step.requirements else f"{step.component}.tar"


def key_of(step: Step, lock: Lock, predecessor_keys: Mapping[CompiledComponent, str]) -> str:
    """Return a hash of all inputs of ``step``; ``predecessor_keys`` maps each component in ``step.after`` to
    the hash of that component's step.
    """
    parts = shipped_folder("containers") / "parts"
    depends = {
        "base": [lock.base.published, *(file.sha256 for file in lock.base.packages)],
        "toolchain": [file.sha256 for file in lock.build.debian],
        "requirements": [file.sha256 for file in step.requirements],
        "source": [step.source.sha256, *(file.sha256 for file in step.extra)],
        "words": step.words,
        "patches": list(step.patches.values()),
        "after": [predecessor_keys[component] for component in step.after],
        "parts": [(parts / name).read_text("utf-8") for name in (*_COMMON, *step.parts)],
    }
    return hashlib.sha256(msgspec.json.encode(depends, order="deterministic")).hexdigest()


def strippers(lock: Lock) -> tuple[LockedFile, ...]:
    """Return the Debian packages in the lock that contain the program ``strip`` or its libraries."""
    packages = (*lock.build.debian, *lock.run.debian)
    return tuple(f for f in packages if f.name in _STRIP or f.name.startswith("binutils-"))


def requirement_lines(files: Sequence[LockedFile]) -> bytes:
    """Return the text of a pip requirements file with the hash of each file; pip checks these hashes."""
    lines = (f"{f.name}=={f.version} --hash=sha256:{f.sha256}\n" for f in sorted(files, key=lambda f: f.name))
    return "".join(lines).encode()


def _step(step: LockedStep, lock: Lock) -> Step:
    sources = {file.name: file for file in lock.build.sources}
    source, extra = sources[step.component], tuple(sources[name] for name in step.extra)
    wheels = tuple(file for file in lock.run.wheels if file.name in step.wheels)
    tools = lock.build.wheels if step.component in PYTHON_PACKAGES else ()
    return Step(
        component=step.component,
        source=source,
        after=step.after,
        wheels=wheels,
        requirements=tuple(f for f in tools if f.name not in step.wheels) + wheels,
        parts=tuple(f"{name}.sh" for name in (step.component, *step.extra, *_NCCL.intersection(step.words))),
        words=("/build/parts/compile.sh", step.component, source.file, *step.words),
        extra=extra,
        patches=step.patches,
    )
