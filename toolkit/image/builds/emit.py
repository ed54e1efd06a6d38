"""Render the Dockerfile or definition of a lock, and the files that it needs."""

import hashlib
from typing import Literal

import msgspec

from toolkit import __version__
from toolkit.image.locks.steps import PREFIX, Step, steps_of
from toolkit.model.lock import PYTHON_PACKAGES, CompiledComponent, Lock
from toolkit.model.recipe import MPIS
from toolkit.render import render
from toolkit.run.docker.bootstrap import MANNER

CREATION_LABEL = "org.opencontainers.image.created"
"""The label with the lock's own time, equal in every image of that lock."""

LOCK = "toolkit.lock"
"""The label with the lock's hash."""

Stage = Literal["base", "stack", "image"]
ALL_STAGES: tuple[Stage, ...] = ("base", "stack", "image")
VENV = "/opt/toolkit/venv"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STEP_SECONDS = 5400
"""A limit above the time of any step on a slow machine."""


class Making(msgspec.Struct, frozen=True, kw_only=True):
    """An image to build: its lock, and the parts that this machine already has.

    ``base`` is written after FROM; if it is empty, ``base.tar`` in the context replaces it. ``ready`` are
    compiled components and the names of their results. ``unbuildable`` says why the lock is only an outline;
    it is empty for a lock to build from.
    """

    lock: Lock
    base: str = ""
    ready: dict[CompiledComponent, str] = {}
    unbuildable: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The compile steps, including finished steps."""
        return steps_of(self.lock)


def dockerfile(
    making: Making, stages: tuple[Stage, ...] = ALL_STAGES, *, only: Step | None = None, stack: str = ""
) -> str:
    """Return a Dockerfile: complete, for some stages, or to compile ``only`` one component.

    ``stack`` is the base of the stage ``image`` if the stage ``stack`` is left out.
    """
    waiting = tuple(step for step in making.steps if step.component not in making.ready)
    compiled = (only,) if only else waiting if "stack" in stages else ()
    values = _values(making)
    if values["brought"]:
        stages, stack = ("image",), making.lock.base.published
    return render(
        "containers",
        "Dockerfile.j2",
        {**values, "compiled": compiled, "stages": stages, "stack": stack},
        one_line=True,
    )


def definition(making: Making, labels: dict[str, str], *, context: str, jobs: int) -> str:
    """Return the Singularity definition; ``context`` is put before the paths of its files."""
    base = making.lock.base.published
    waiting = tuple(step for step in making.steps if step.component not in making.ready)
    places = {
        "bootstrap": "docker" if base else "docker-archive",
        "from": base or f"{context}base.tar",
        "context": context,
        "jobs": jobs,
        "labels": labels,
    }
    values = {
        **_values(making),
        "compiled": waiting,
        "patched": any(step.patches for step in waiting),
        **places,
    }
    return render("containers", "Singularity.def.j2", values, one_line=True)


def _values(making: Making) -> dict[str, object]:
    lock = making.lock
    wheels = [
        f"{step.component}=={step.source.version}"
        for step in making.steps
        if step.component in PYTHON_PACKAGES
    ]
    return {
        "name": lock.recipe,
        "title": lock.title,
        "version": __version__,
        "base": making.base,
        "rootfs": not making.base,
        "brought": any(chosen.provider == "published" for chosen in lock.solution.chosen),
        "unbuildable": making.unbuildable,
        "ready": making.ready,
        "seconds": _STEP_SECONDS,
        "said": {"RECIPE": lock.recipe, "BASE": origin(lock), "TOOLKIT": __version__},
        "stack_words": ("/build/parts/stack.sh", *wheels),
        "environment": environment(lock),
    }


def environment(lock: Lock) -> dict[str, str]:
    """Return the environment variables of the finished image."""
    own = [f"{VENV}/bin"]
    own += [f"{PREFIX}/bin"] if any(step.component in MPIS for step in lock.steps) else []
    return {"PATH": ":".join((*own, _SYSTEM_PATH)), "LANG": "C.UTF-8", **lock.environment}


def origin(lock: Lock) -> str:
    """Return the base of an image in words that do not depend on the machine."""
    if lock.base.published:
        return f"{lock.base.published} (published)"
    return f"{base_name(lock)} (bootstrapped from {len(lock.base.packages)} locked packages)"


def base_name(lock: Lock) -> str:
    """Return the engine's name for the base of a lock's packages, as built by this version of toolkit."""
    made_of = (MANNER, *sorted(file.sha256 for file in lock.base.packages))
    digest = hashlib.sha256("".join(made_of).encode()).hexdigest()
    return f"toolkit-base:{lock.base.release}-{digest[:12]}"
