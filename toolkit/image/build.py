"""Build the image of a recipe in the Docker engine; it is tagged once it has been tried."""

import datetime as dt
import os
from typing import TYPE_CHECKING

import msgspec

from toolkit.errors import Missing
from toolkit.image import emit
from toolkit.image.check import check
from toolkit.image.recipe import Named
from toolkit.image.solved import solved
from toolkit.model.progress import Tell
from toolkit.run import surroundings
from toolkit.run.base import ensure_base
from toolkit.run.engine import (
    BuildOptions,
    build_image,
    build_memory,
    find_image,
    forget_image,
    machine,
    tag_image,
)

if TYPE_CHECKING:
    from docker import DockerClient

_SECONDS = 5400.0
_MEMORY_OF_A_COMPILER = 3 << 29
"""1.5 GiB: what one C++ compiler takes for Horovod's sources, which include TensorFlow's headers."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """An image in the engine; ``reused`` says that nothing had to be built."""

    schema: str = "toolkit.built/1"
    recipe: str
    tag: str
    id: str
    base: str
    source: str
    bytes: int
    reused: bool


def build(
    client: "DockerClient", named: Named, tell: Tell, *, fresh: bool = False, newer_base: bool = False
) -> Built:
    """Build and try the image of a recipe, unless the engine has it from the same sources.

    ``fresh`` builds anyway; ``newer_base`` asks the registry for the base again.

    Raises:
        CheckFailed: if a step or the trial fails; no image is tagged then.
        Missing: if the engine, or a way to a base image, is not there.
    """
    source = emit.source_hash(named)
    if not (fresh or newer_base) and (kept := find(client, named)) is not None and kept.source == source:
        tell.step(f"{named.tag} is built from these sources already")
        return kept
    row = emit.base_of(solved(named))
    base = ensure_base(client, row.release, row.image, tell, fresh=newer_base)
    tell.step(f"Building {named.tag} on {base}")
    env = os.environ
    settings = surroundings.pip_settings(env)
    around = emit.Surroundings(base.reference, str(base), surroundings.certificates(env), tuple(settings))
    memory = build_memory(client)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    options = BuildOptions(
        memory=memory,
        timeout=_SECONDS,
        arguments={**surroundings.proxies(env), **settings, "JOBS": str(_jobs(client, memory))},
        labels={**emit.labels(named, around), emit.CREATED: now},
    )
    image = build_image(client, emit.context(named, around), named.name, tell, options)
    try:
        check(client, image, named, tell)
    except BaseException:
        forget_image(client, image)
        raise
    tag_image(client, image, named.tag)
    return _described(client, named, reused=False)


def find(client: "DockerClient", named: Named) -> Built | None:
    """Return the image of a recipe as the engine has it, from whatever sources; ``None`` if it has none."""
    return None if find_image(client, named.tag) is None else _described(client, named, reused=True)


def _described(client: "DockerClient", named: Named, *, reused: bool) -> Built:
    image = find_image(client, named.tag)
    if image is None:
        raise Missing(f"{named.tag} is not in the Docker engine", fix=f"toolkit image build {named.name}")
    labels = image.labels or {}
    return Built(
        recipe=named.name,
        tag=named.tag,
        id=image.id,
        base=labels.get("toolkit.base", ""),
        source=labels.get("toolkit.source", ""),
        bytes=int(image.attrs.get("Size", 0)),
        reused=reused,
    )


def _jobs(client: "DockerClient", memory: int) -> int:
    """Return how many compilers may run beside each other within the memory."""
    processors, _ = machine(client)
    return max(1, min(processors, memory // _MEMORY_OF_A_COMPILER))
