"""From a recipe to the text of its Dockerfile and the files beside it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit import __version__
from toolkit.data import package, shipped
from toolkit.image.recipe import Named
from toolkit.image.solved import solved
from toolkit.knowledge.stacks import Base, Version, stacks
from toolkit.model.recipe import MPIS
from toolkit.model.solution import Component, Solution
from toolkit.render import render

_BUILD_TOOLS = ("python3", "python3-venv", "python3-dev", "g++", "make", "cmake", "pkg-config")
"""The same for all recipes, so that they share the layer, which does not end up in any image."""


CREATED = "org.opencontainers.image.created"
"""The label that differs in every image that is built; it tells whether a SIF came from this one."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the machine that builds adds to a recipe: the base that it found, and its way to the network.

    ``base`` goes behind FROM, ``origin`` into the image's description of itself.
    ``pip_variables`` are names of build arguments.
    """

    base: str
    origin: str
    certificates: bytes | None = None
    pip_variables: Sequence[str] = ()


def published(named: Named) -> Surroundings:
    """Return the surroundings of a machine that nothing is known of: the published base, nothing else."""
    image = base_of(solved(named)).image
    return Surroundings(image, image)


def base_of(solution: Solution) -> Base:
    """Return the row of the base that was chosen."""
    return stacks().base_of(solution.versions["base"])


def _row(solution: Solution, component: Component) -> Version | None:
    chosen = solution.of(component)
    rows = stacks().rows(component) if chosen else ()
    return next(
        (r for r in rows if chosen and (r.version, r.provider) == (chosen.version, chosen.provider)), None
    )


def dockerfile(named: Named, around: Surroundings) -> str:
    """Return the Dockerfile of a recipe."""
    recipe, solution = named.recipe, solved(named)
    versions = solution.versions
    mpi = _row(solution, "openmpi") or _row(solution, "mpich")
    horovod = _row(solution, "horovod")
    return render(
        "containers",
        "Dockerfile.j2",
        {
            "name": named.name,
            "title": " ".join(recipe.title.split()),
            "version": __version__,
            "base": around.base,
            "origin": around.origin,
            "certificates": around.certificates is not None,
            "pip_variables": tuple(around.pip_variables),
            "build_packages": (*_BUILD_TOOLS, *(mpi.debian.build if mpi else ())),
            "run_packages": ("python3", *(mpi.debian.run if mpi else ())),
            "mpi4py": versions.get("mpi4py"),
            "tensorflow": versions.get("tensorflow"),
            "horovod": versions.get("horovod"),
            "horovod_build": horovod.tools if horovod else (),
            "operations": recipe.operations,
            "packages": recipe.packages,
        },
    )


def context(named: Named, around: Surroundings) -> dict[str, bytes]:
    """Return what the engine builds from: the Dockerfile, what describes the image, the trainers."""
    files = {
        "Dockerfile": dockerfile(named, around).encode(),
        "stack.py": (shipped("containers") / "stack.py").read_bytes(),
        "lib/toolkit/__init__.py": (package() / "__init__.py").read_bytes(),
    }
    if around.certificates is not None:
        files["certificates.pem"] = around.certificates
    trainers = package() / "trainers"
    for file in sorted(trainers.rglob("*")):
        if file.is_file() and _belongs(file.relative_to(trainers)):
            files[f"lib/toolkit/trainers/{file.relative_to(trainers).as_posix()}"] = file.read_bytes()
    return files


def source_hash(named: Named) -> str:
    """Return a hash of all that an image is made from, whatever machine makes it.

    Two machines with the same recipe, templates and trainers get the same one.
    """
    return digest_of(context(named, published(named)))


def digest_of(files: dict[str, bytes]) -> str:
    """Return one hash for names and contents of files."""
    whole = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def labels(named: Named, around: Surroundings) -> dict[str, str]:
    """Return the labels by which others, and this program itself, know the image."""
    solution = solved(named)
    versions = solution.versions
    mpi = next(name for name in MPIS if name in versions)
    wanted = {
        "mpi": f"{mpi} {versions[mpi]}",
        **{name: versions.get(name) for name in ("mpi4py", "tensorflow", "horovod")},
    }
    return {
        "org.opencontainers.image.title": named.name,
        "org.opencontainers.image.description": " ".join(named.recipe.title.split()),
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.base.name": base_of(solution).image,
        "toolkit.recipe": named.name,
        "toolkit.version": __version__,
        "toolkit.base": around.origin,
        "toolkit.source": source_hash(named),
        **{f"toolkit.{name}": value for name, value in wanted.items() if value},
    }


def _belongs(path: Path) -> bool:
    return "__pycache__" not in path.parts and not path.name.startswith(".")
