"""Facts about the MPI libraries of a host and of an image."""

import msgspec


class HostMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI on the host, found by its launcher, and its library, which can be bound into an image.

    Unknown fields are ``None``.
    """

    implementation: str
    version: str | None
    launcher: str
    lacks: tuple[str, ...] = ()
    """Missing libraries that kept the launcher from starting when the probe queried its version."""
    leaks: tuple[str, ...] | None = None
    """Variables that it sets for its children and that name its own installation."""
    pmix: str | None = None
    """Version of the launcher's PMIx server."""
    prefix: str | None = None
    """The folder of the installation."""
    library: str | None = None
    """The real path of the library libmpi."""
    soname: str | None = None
    interfaces: tuple[str, ...] | None = None
    device: str | None = None
    """MPICH's device and its network modules: ``ch4:ofi,ucx``."""
    needs: tuple[str, ...] | None = None
    """Every library that is loaded with libmpi: sonames, without the C library."""
    components: dict[str, tuple[str, ...]] | None = None
    """Open MPI's components that connect ranks and send messages: framework → names, built in or files."""
    components_need: dict[str, tuple[str, ...]] | None = None
    """What each component that is a file loads in addition: ``pmix_ext3x`` → sonames."""
    places: dict[str, str] | None = None
    """The folder of each of these libraries that was found."""
    folders: tuple[str, ...] | None = None
    """The folders of all these libraries, the MPI library's own folder first."""
    outside: tuple[str, ...] | None = None
    """The libraries among these that are not below ``prefix``."""
    ucx: str | None = None
    """Version of the UCX that the MPI loads."""
    fabric: str | None = None
    """Newest interface version (``1.7`` of ``FABRIC_1.7``) of the libfabric that is loaded with it."""
    glibc_needed: str | None = None
    """Newest version of the C library that it needs, or that the libraries mounted with it need."""
    plugins: str | None = None
    """The folder with the components of the MPI, if they are files."""
    relocatable: bool | None = None
    """Whether the library finds its files under any prefix."""


class ImageMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library in an image and the launch interfaces that it can use (``pmix``, ``pmi1``, ``pmi2``).

    ``markers`` are strings in the library that show how it behaves (``PMIX_RANK``); ``plugins`` says that its
    components are separate files, which a host's path can hide.
    """

    implementation: str
    version: str | None
    """Release of the library; for Open MPI and MPICH the project's release."""
    library: str
    interfaces: tuple[str, ...] | None
    """Launch interfaces that it can use: ``pmix``, ``pmi1``, ``pmi2``."""
    launcher: str | None = None
    """Path of the mpirun of this MPI; ``None`` without an mpirun."""
    plugins: bool | None = None
    """Whether its components are separate files, which a path of the host can hide."""
    markers: tuple[str, ...] = ()
    soname: str | None = None
    """The name by which programs load the library: ``libmpi.so.40``."""
    library_string: str | None = None
    """What ``MPI_Get_library_version`` returns, if the library contains it as one text."""
    device: str | None = None
    """MPICH's device and its network modules, the preferred one first: ``ch4:ucx,ofi``."""
    own_shm: bool | None = None
    """MPICH's ch4 has its own shared memory; built only for UCX, it leaves ranks of one node to UCX
    (pmodels/mpich:src/mpid/ch4/subconfigure.m4).
    """
    components: dict[str, tuple[str, ...]] = {}
    """Open MPI's components by framework (``{"btl": ("self", "tcp", "vader")}``), built in or as files."""
    how: dict[str, str] = {}
    """The source of each interface: ``linked`` (its own code or a library that it is linked with), or
    ``component NAME`` for a plugin.
    """
    prefix: str | None = None
    """The folder of the installation: ``/usr``, ``/opt/venv``."""
    built_for: str | None = None
    """The missing folder in which a relocated Open MPI still looks for its plugins, if the image names no
    other.
    """
    led_by: dict[str, str] = {}
    """The variable that names the real folder of the components, and its value: ``{"OPAL_PREFIX":
    "/opt/hpcx/ompi"}``."""
    needs: tuple[str, ...] = ()
    """Every library that is loaded with it, as the image's loader resolves them: sonames, sorted."""
    lacks: tuple[str, ...] = ()
    """The libraries among these that the image's loader does not find."""
    pmix: str | None = None
    """Release of the PMIx client of an additional MPI; for the first MPI it is a fact of the image."""
    fabric_asked: str | None = None
    """Newest version of libfabric's interface (``1.8`` of ``FABRIC_1.8``) that it needs; ``None`` if it
    needs none, or if its own DT_RPATH finds libfabric before LD_LIBRARY_PATH does.
    """
