"""From a lock to the texts that an image is built from, and the files beside them."""

import hashlib
from typing import Literal

import msgspec

from toolkit import __version__
from toolkit.image.locks.steps import PREFIX, Step, steps_of
from toolkit.model.lock import PYTHON_PACKAGES, Compiled, Lock
from toolkit.model.recipe import MPIS
from toolkit.render import render
from toolkit.run.docker.bootstrap import MANNER

CREATED = "org.opencontainers.image.created"
"""The label with the lock's own time: it is the same in every image of that lock."""

LOCK = "toolkit.lock"
"""The label with the lock's hash."""

Stage = Literal["base", "stack", "image"]
WHOLE: tuple[Stage, ...] = ("base", "stack", "image")
VENV = "/opt/toolkit/venv"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STEP_SECONDS = 5400
"""No step takes longer, however slow the machine is."""


class Making(msgspec.Struct, frozen=True, kw_only=True):
    """One image to make: its lock, and what the machine has for it already.

    ``base`` goes behind FROM; ``base.tar`` in the context takes its place if it is empty. ``ready`` are
    components that are compiled, and the names of what was made. ``unbuildable`` says why the lock is only an
    outline; it is empty for a lock to build from.
    """

    lock: Lock
    base: str = ""
    ready: dict[Compiled, str] = {}
    unbuildable: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """What there is to compile, whether it is ready or not."""
        return steps_of(self.lock)


def dockerfile(
    making: Making, stages: tuple[Stage, ...] = WHOLE, *, only: Step | None = None, stack: str = ""
) -> str:
    """Return a Dockerfile: the whole one, one for some stages, or one that compiles ``only`` one component.

    ``stack`` is the image that the stage ``image`` is put on where the stage ``stack`` is not there.
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
    """Return the variables of the finished image."""
    own = [f"{VENV}/bin"]
    own += [f"{PREFIX}/bin"] if any(step.component in MPIS for step in lock.steps) else []
    return {"PATH": ":".join((*own, _SYSTEM_PATH)), "LANG": "C.UTF-8", **lock.environment}


def origin(lock: Lock) -> str:
    """Say which base an image is on, in a way that does not depend on the machine."""
    if lock.base.published:
        return f"{lock.base.published} (published)"
    return f"{base_name(lock)} (bootstrapped from {len(lock.base.packages)} locked packages)"


def base_name(lock: Lock) -> str:
    """Return the name in the engine of the base that a lock's packages make, the way this toolkit does it."""
    made_of = (MANNER, *sorted(file.sha256 for file in lock.base.packages))
    digest = hashlib.sha256("".join(made_of).encode()).hexdigest()
    return f"toolkit-base:{lock.base.release}-{digest[:12]}"
