"""Make small locks for tests."""

import hashlib

from toolkit.model.lock import Lock, LockedBase, LockedFile, Stage
from toolkit.model.solution import Chosen, Component, Provider, Solution


def file(name: str, version: str, ending: str) -> LockedFile:
    named = f"{name}_{version}{ending}"
    digest = hashlib.sha256(named.encode()).hexdigest()
    return LockedFile(
        name=name, version=version, file=named, origin=f"debian:pool/{named}", sha256=digest, size=len(named)
    )


def chosen(component: Component, version: str, provider: Provider) -> Chosen:
    return Chosen(
        component=component, version=version, provider=provider, why="it is the newest", source="a test"
    )


def published() -> LockedBase:
    """Return a locked base image that a registry offers."""
    image = "debian:bookworm-slim"
    return LockedBase(
        name="debian:bookworm", release="12", image=image, published=f"debian@sha256:{'ab' * 32}"
    )


def lock(**changes: object) -> Lock:
    """Return the lock of an image with Open MPI from source, TensorFlow and Horovod."""
    values: dict[str, object] = {
        "recipe": "small",
        "recipe_sha256": "12" * 32,
        "title": "A small image",
        "packages": (),
        "solution": Solution(
            recipe="small",
            architecture="x86_64",
            chosen=(
                chosen("base", "debian:bookworm", "base"),
                chosen("python", "3.11.2", "debian"),
                chosen("openmpi", "4.1.6", "source"),
                chosen("pmix", "4.2.2", "debian"),
                chosen("mpi4py", "3.1.6", "source"),
                chosen("tensorflow", "2.15.1", "pypi"),
                chosen("horovod", "0.28.1", "source"),
            ),
        ),
        "epoch": 1_700_000_000,
        "base": LockedBase(
            name="debian:bookworm",
            release="bookworm",
            image="debian:bookworm-slim",
            packages=(file("dash", "0.5.12-2", "_amd64.deb"),),
        ),
        "steps": (),
        "environment": {},
        "licences": {"mpi4py": "BSD-2-Clause"},
        "build": Stage(debian=(file("g++", "4:12.2.0-3", "_amd64.deb"),)),
        "run": Stage(
            debian=(
                file("python3.11", "3.11.2-6+deb12u6", "_amd64.deb"),
                file("libpmix2", "4.2.2-1", "_amd64.deb"),
            ),
            wheels=(file("tensorflow-cpu", "2.15.1", ".whl"), file("Markdown", "3.5", ".whl")),
            sources=(
                file("openmpi", "4.1.6", ".tar.bz2"),
                file("mpi4py", "3.1.6", ".tar.gz"),
                file("horovod", "0.28.1", ".tar.gz"),
            ),
        ),
    }
    return Lock(**{**values, **changes})
