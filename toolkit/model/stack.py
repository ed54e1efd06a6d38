"""The component versions of an image, as ``/opt/toolkit/stack.json`` lists them."""

import msgspec

ENV_MOUNT = "/opt/toolkit-env"
"""The path in a container where the runtime mounts a file that ``toolkit env`` made."""
STACK_PATH = "/opt/toolkit/stack.json"
"""The path of the stack description inside an image."""


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """The exact versions of an image's components, as far as the components affect MPI jobs. A version is
    empty if the image does not contain the component.

    The build reads the versions from the finished image, not from the recipe.
    """

    schema: str = "toolkit.stack/1"
    recipe: str
    distribution: str
    architecture: str
    glibc: str
    python: str
    mpi: str
    """Name of the MPI implementation: ``openmpi`` or ``mpich``."""
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
    """The base image, its registry, and its digest."""
    toolkit: str
    """Release of toolkit that built the image."""
