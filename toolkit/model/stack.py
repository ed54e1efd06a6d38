"""The matched set of versions in an image, as ``/opt/toolkit/stack.json`` states it."""

import msgspec

ENV_MOUNT = "/opt/toolkit-env"
"""Where a file of ``toolkit env`` is mounted in a container."""
STACK_PATH = "/opt/toolkit/stack.json"
"""The path of the description that an image contains."""


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """Exact versions of everything that matters to MPI jobs; empty text for a missing component.

    The build reads them from the finished image, and never copies them from the recipe.
    """

    schema: str = "toolkit.stack/1"
    recipe: str
    distribution: str
    architecture: str
    glibc: str
    python: str
    mpi: str
    """Implementation: ``openmpi`` or ``mpich``."""
    mpi_version: str
    pmix: str
    ucx: str
    libfabric: str
    hwloc: str
    tensorflow: str
    horovod: str
    horovod_operations: tuple[str, ...] = ()
    mpi4py: str
    numpy: str
    torch: str = ""
    jax: str = ""
    base: str
    """The base image and its origin, with its digest."""
    toolkit: str
    """Version of the toolkit that built the image."""
