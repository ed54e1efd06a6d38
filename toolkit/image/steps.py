"""What a lock's image is compiled from, one step a component, and what each of them depends on; pure."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from toolkit.data import shipped
from toolkit.errors import BadInput
from toolkit.image.ingredients import COMPILED, Ingredients, ingredients
from toolkit.knowledge.stacks import stacks
from toolkit.model.lock import Lock, LockedFile
from toolkit.model.recipe import Recipe
from toolkit.model.solution import Component

PREFIX = "/opt/mpi"
"""Where an MPI that is compiled, and what it stands on, is installed."""

_MPI: tuple[Component, ...] = ("openmpi", "mpich")
_COMMON = ("packages.sh", "compile.sh", "python.sh")
_STRIP = ("binutils", "libbinutils", "libctf", "libctf-nobfd0", "libgprofng0", "libjansson4", "libsframe1")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One component that is compiled, from ``source``, after those of ``after``.

    ``wheels`` are those of the image that it sees, ``requirements`` these and the tools. ``extra`` are
    archives that its part takes something out of. ``words`` follow ``sh``.
    """

    component: Component
    source: LockedFile
    after: tuple[Component, ...]
    wheels: tuple[LockedFile, ...]
    requirements: tuple[LockedFile, ...]
    parts: tuple[str, ...]
    words: tuple[str, ...]
    extra: tuple[LockedFile, ...] = ()


def steps_of(lock: Lock, recipe: Recipe) -> tuple[Step, ...]:
    """Return what a lock's image is compiled from, in an order that works.

    Raises:
        BadInput: if the lock lacks a source archive.
    """
    needs = ingredients(lock.solution, recipe, stacks())
    return tuple(_step(component, needs, lock, recipe) for component in needs.compiled if component != "cuda")


def output_of(step: Step) -> str:
    """Return the pattern of the name of what a step makes."""
    return f"{step.component}-*.whl" if step.requirements else f"{step.component}.tar"


def key_of(step: Step, lock: Lock, before: Mapping[Component, str]) -> str:
    """Return a hash of all that a step's output depends on; ``before`` has those of earlier steps."""
    parts = shipped("containers") / "parts"
    depends = {
        "base": [lock.base.published, *(file.sha256 for file in lock.base.packages)],
        "toolchain": [file.sha256 for file in lock.build.debian],
        "requirements": [file.sha256 for file in step.requirements],
        "source": [step.source.sha256, *(file.sha256 for file in step.extra)],
        "words": step.words,
        "after": [before[component] for component in step.after],
        "parts": [(parts / name).read_text("utf-8") for name in (*_COMMON, *step.parts)],
    }
    return hashlib.sha256(msgspec.json.encode(depends, order="deterministic")).hexdigest()


def strippers(lock: Lock) -> tuple[LockedFile, ...]:
    """Return the packages of the toolchain that the program ``strip`` is in."""
    packages = (*lock.build.debian, *lock.run.debian)
    return tuple(f for f in packages if f.name in _STRIP or f.name.startswith("binutils-"))


def requirement_lines(files: Sequence[LockedFile]) -> bytes:
    """Return the text of a requirements file that takes these files and no others."""
    lines = (f"{f.name}=={f.version} --hash=sha256:{f.sha256}\n" for f in sorted(files, key=lambda f: f.name))
    return "".join(lines).encode()


def _step(component: Component, needs: Ingredients, lock: Lock, recipe: Recipe) -> Step:
    row = needs.rows[component]
    source = next((f for f in lock.build.sources if f.name == component), None)
    if source is None:
        raise BadInput(
            f"the lock of {lock.recipe} names no source archive of {component}",
            fix=f"toolkit image lock {lock.recipe} --upgrade",
        )
    wheels = _seen(component, needs, lock)
    tools = lock.build.wheels if component in needs.sdists else ()
    own = {file.name for file in wheels}
    words = recipe.operations if component == "horovod" else row.configure
    # The compiler of CUDA is no step of its own: nothing of it is to be in the image.
    extra = tuple(f for f in lock.build.sources if f.name == "cuda" and component == "horovod")
    return Step(
        component=component,
        source=source,
        after=tuple(c for c in COMPILED[component] if c in needs.compiled),
        wheels=wheels,
        requirements=tuple(f for f in tools if f.name not in own) + wheels,
        parts=(f"{component}.sh", *(f"{file.name}.sh" for file in extra)),
        words=("/build/parts/compile.sh", component, source.file, *words),
        extra=extra,
    )


def _seen(component: Component, needs: Ingredients, lock: Lock) -> tuple[LockedFile, ...]:
    """Return the wheels that a component is compiled against: TensorFlow and all, or an MPI from PyPI."""
    if component == "horovod":
        return lock.run.wheels
    if component not in needs.sdists:
        return ()
    rows = [needs.rows[mpi] for mpi in _MPI if mpi in needs.rows]
    names = {wheel.partition("==")[0] for row in rows for wheel in row.wheels}
    return tuple(file for file in lock.run.wheels if file.name in names)
