"""Build a recipe's image from its lock in the Docker engine, test the image, and tag it if the test succeeds.

Build steps have no network: toolkit downloads and verifies the lock's files before the build. The stack is
the image without toolkit's trainers; the name of the stack contains a hash of all inputs of the stack.
toolkit keeps compiled components, the stack and the finished image, and rebuilds only what a change affects.
"""

from typing import TYPE_CHECKING

import msgspec

from toolkit.errors import BadInput, Missing
from toolkit.image.builds.based import ensure_locked_base, mirrors_of
from toolkit.image.builds.check import check
from toolkit.image.builds.compiled import MEMORY_OF_A_COMPILER, Made, ensure_compiled
from toolkit.image.builds.context import image_context, stack_context
from toolkit.image.builds.emit import Making
from toolkit.image.builds.identity import labels, source_hash, stack_hash
from toolkit.image.locks.fetch import fetch_files
from toolkit.image.locks.lock import files_of
from toolkit.image.locks.recipe import NamedRecipe
from toolkit.model.lock import CompiledComponent, Lock
from toolkit.model.progress import Tell
from toolkit.run.docker.engine import (
    BuildOptions,
    architecture,
    build_image,
    build_memory,
    find_image,
    forget_image,
    machine,
    named_like,
    tag_image,
    untag_image,
)
from toolkit.run.docker.engine_images import size_of

if TYPE_CHECKING:
    from docker import DockerClient

_SECONDS = 7200.0
_STACK = "toolkit-stack"


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A built image in the Docker engine.

    ``base`` describes the base image. ``source`` is the hash of all inputs of the image, and ``lock`` is the
    SHA-256 of the lock. ``bytes`` is the size of the image. ``reused`` is true if the engine had the image
    before this build.
    """

    schema: str = "toolkit.built/1"
    recipe: str
    tag: str
    id: str
    base: str
    source: str
    lock: str
    bytes: int
    reused: bool


def build(
    client: "DockerClient", named_recipe: NamedRecipe, lock: Lock, tell: Tell, *, fresh: bool = False
) -> Built:
    """Build and test a recipe's image from its lock. If the engine has an image with the recipe's tag that
    was built from the same inputs, return that image without a build.

    If ``fresh`` is true, toolkit compiles all components and builds the image again, without the caches.

    Raises:
        BadInput: if the recipe says that toolkit cannot build it, or the recipe and the Docker engine have
            different architectures.
        CheckFailed: if a build step or a test of the image fails; the image then gets no tag.
        Missing: if the Docker engine does not respond, or toolkit cannot download a file of the lock.
    """
    if named_recipe.recipe.unbuildable:
        raise BadInput(
            f"toolkit cannot build {named_recipe.name}: {named_recipe.recipe.unbuildable}",
            fix=f"build the image on another machine; `toolkit image render {named_recipe.name}` prints the "
            f"Dockerfile",
        )
    if (has := architecture(client)) != lock.solution.architecture:
        raise BadInput(
            f"{named_recipe.name} is a recipe for {lock.solution.architecture}; this Docker engine runs on "
            f"{has}",
            fix=f"run `toolkit image render {named_recipe.name} -o ctx`, and build the folder ctx on a "
            f"machine with {lock.solution.architecture}",
        )
    making = Making(lock=lock)
    source = source_hash(making)
    if not fresh and (existing := find(client, named_recipe)) is not None and existing.source == source:
        tell.step(f"{named_recipe.tag} is up to date: its lock and toolkit's code have not changed")
        return existing
    options = BuildOptions(memory=build_memory(client), timeout=_SECONDS, network="none", fresh=fresh)
    stack = _stack(client, named_recipe, making, tell, options)
    tell.step(f"Building {named_recipe.tag} on {stack}")
    own = BuildOptions(options.memory, options.timeout, labels=labels(making), network="none")
    image = build_image(client, image_context(making, stack), named_recipe.name, tell, own)
    try:
        check(client, image, lock, tell)
    except BaseException:
        forget_image(client, image)
        raise
    tag_image(client, image, named_recipe.tag)
    _forget_other_stacks(client, named_recipe, stack)
    return _describe_built(client, named_recipe, reused=False)


def find(client: "DockerClient", named_recipe: NamedRecipe) -> Built | None:
    """Return the image with a recipe's tag, or None if no image has the tag. toolkit may have built the
    image from an earlier lock, or with an earlier version of toolkit.
    """
    return (
        None
        if find_image(client, named_recipe.tag) is None
        else _describe_built(client, named_recipe, reused=True)
    )


def _stack(
    client: "DockerClient", named_recipe: NamedRecipe, making: Making, tell: Tell, options: BuildOptions
) -> str:
    """Return the name of the stack (the image without the trainers); build the stack if the engine lacks
    it.
    """
    lock = making.lock
    files = fetch_files(
        files_of(lock), tell, recipe=named_recipe.name, mirrors=mirrors_of(client, lock, tell)
    )
    base = ensure_locked_base(client, lock, files, tell, fresh=options.fresh)
    making = msgspec.structs.replace(making, base=base)
    results = ensure_compiled(client, making, files, tell, options, _jobs(client, options.memory))
    hashes: dict[str, str] = {component: result.sha256 for component, result in results.items()}
    name = f"{_STACK}:{named_recipe.name}-{stack_hash(making, hashes)[:12]}"
    if not options.fresh and find_image(client, name) is not None:
        return name
    tell.step(f"Building the stack ({named_recipe.name} without the trainers) on {base}")
    making = msgspec.structs.replace(making, compiled_files=_names(results))
    context = stack_context(making, files, {result.path.name: result.path for result in results.values()})
    tag_image(client, build_image(client, context, f"{named_recipe.name}: the stack", tell, options), name)
    return name


def _names(results: dict[CompiledComponent, Made]) -> dict[CompiledComponent, str]:
    return {component: result.path.name for component, result in results.items()}


def _forget_other_stacks(client: "DockerClient", named_recipe: NamedRecipe, stack: str) -> None:
    """Remove the recipe's stacks, except ``stack``, from the engine. The engine keeps the layers that another
    image uses.
    """
    for name in named_like(client, f"{_STACK}:{named_recipe.name}-"):
        if name != stack and len(name) == len(stack):
            untag_image(client, name)


def _describe_built(client: "DockerClient", named_recipe: NamedRecipe, *, reused: bool) -> Built:
    image = find_image(client, named_recipe.tag)
    if image is None:
        raise Missing(
            f"{named_recipe.tag} is not in the Docker engine",
            fix=f"build the image: `toolkit image build {named_recipe.name}`",
        )
    image_labels = image.labels or {}
    return Built(
        recipe=named_recipe.name,
        tag=named_recipe.tag,
        id=image.id,
        base=image_labels.get("toolkit.base", ""),
        source=image_labels.get("toolkit.source", ""),
        lock=image_labels.get("toolkit.lock", ""),
        bytes=size_of(image),
        reused=reused,
    )


def _jobs(client: "DockerClient", memory: int) -> int:
    """Return the number of compilers that the engine can run in parallel with ``memory`` bytes of memory."""
    processors, _ = machine(client)
    return max(1, min(processors, memory // MEMORY_OF_A_COMPILER))
