"""Render the Dockerfile or the Apptainer definition of a lock."""

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
"""The label with the image's creation date. The date is the lock's ``epoch``, so all images that are built
from one lock have the same date.
"""

LOCK = "toolkit.lock"
"""The label with the SHA-256 of the lock from which the image was built."""

Stage = Literal["base", "stack", "image"]
ALL_STAGES: tuple[Stage, ...] = ("base", "stack", "image")
VENV = "/opt/toolkit/venv"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STEP_SECONDS = 5400
"""The time limit of a build step, in seconds. Even on a slow machine, a build step needs less time."""


class Making(msgspec.Struct, frozen=True, kw_only=True):
    """An image to build: its lock, its base image, and the components that are already compiled.

    ``base`` is the image in the FROM line of the Dockerfile; if ``base`` is empty, the build unpacks
    ``base.tar`` from the context. ``compiled_files`` maps each component that is already compiled to the name
    of its file. If toolkit cannot build the recipe's image, ``unbuildable`` is the reason in the recipe,
    and the Dockerfile is only an outline. Otherwise, ``unbuildable`` is empty.
    """

    lock: Lock
    base: str = ""
    compiled_files: dict[CompiledComponent, str] = {}
    unbuildable: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that compile the lock's components, including components that are already compiled."""
        return steps_of(self.lock)


def dockerfile(
    making: Making,
    stages: tuple[Stage, ...] = ALL_STAGES,
    *,
    single_step: Step | None = None,
    stack: str = "",
) -> str:
    """Return a Dockerfile for ``stages``. If ``single_step`` is given, the Dockerfile compiles only the
    component of this step.

    ``stack`` is the name of the image to which the stage ``image`` adds toolkit's own files. Callers must
    give ``stack`` if ``stages`` contains ``image`` but not ``stack``.
    """
    waiting = tuple(step for step in making.steps if step.component not in making.compiled_files)
    compiled = (single_step,) if single_step else waiting if "stack" in stages else ()
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
    """Return the text of an Apptainer definition file.

    ``labels`` are the labels of the image. ``context`` is the prefix of the path of each file that the
    definition copies. ``jobs`` is the number of parallel compilers.
    """
    base = making.lock.base.published
    waiting = tuple(step for step in making.steps if step.component not in making.compiled_files)
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
        "ready": making.compiled_files,
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
    """Return a description of the lock's base image: its name, and whether it is published or bootstrapped.
    The same lock gives the same description on every machine.
    """
    if lock.base.published:
        return f"{lock.base.published} (published)"
    return f"{base_name(lock)} (bootstrapped from {len(lock.base.packages)} locked packages)"


def base_name(lock: Lock) -> str:
    """Return the tag of a base image that is built from a lock's packages.

    The tag depends on the lock's ``epoch``, a time in Unix seconds, because the base image contains this
    time: as the modification time of files, and in ``/etc/shadow`` as the date of password changes.
    """
    made_of = (MANNER, str(lock.epoch), *sorted(file.sha256 for file in lock.base.packages))
    digest = hashlib.sha256("".join(made_of).encode()).hexdigest()
    return f"toolkit-base:{lock.base.release}-{digest[:12]}"
