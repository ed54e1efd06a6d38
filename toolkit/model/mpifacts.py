"""Facts about the MPI libraries of a host and of an image."""

import msgspec


class HostMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI installation of the host: its launcher, and its library, which toolkit can mount into an image.

    Unknown fields are ``None``.
    """

    implementation: str
    version: str | None
    launcher: str
    lacks: tuple[str, ...] = ()
    """Missing libraries because of which the launcher did not start when the probe queried its version."""
    leaks: tuple[str, ...] | None = None
    """Variables that the launcher sets for its ranks and that name the host's installation."""
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
    """Sonames of every library that the loader loads with libmpi, without the C library."""
    components: dict[str, tuple[str, ...]] | None = None
    """Open MPI's components that connect ranks and send messages: framework → names; built in or as files."""
    components_need: dict[str, tuple[str, ...]] | None = None
    """Component that is a file → sonames that it loads in addition: ``pmix_ext3x``."""
    places: dict[str, str] | None = None
    """Soname → the folder of the library, for each loaded library that was found."""
    folders: tuple[str, ...] | None = None
    """The folders of the libraries in ``needs`` and ``components_need``; the MPI library's folder comes
    first.
    """
    outside: tuple[str, ...] | None = None
    """The libraries in ``needs`` and ``components_need`` that are not below ``prefix``."""
    ucx: str | None = None
    """Version of the UCX that the MPI loads."""
    fabric: str | None = None
    """Newest interface version of the libfabric that the MPI loads: ``1.7`` for ``FABRIC_1.7``."""
    glibc_needed: str | None = None
    """Newest glibc version that the MPI library, or a library that is mounted with it, needs."""
    plugins: str | None = None
    """The folder with the components of the MPI, if the components are files."""
    relocatable: bool | None = None
    """Whether the library finds its files if it is mounted at another path."""


class ImageMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library in an image and the launch interfaces that it can use (``pmix``, ``pmi1``, ``pmi2``).

    ``markers`` are strings in the library that show how it behaves (``PMIX_RANK``).
    """

    implementation: str
    version: str | None
    """Release of the library; for MPI libraries derived from Open MPI or MPICH, the release of that project.
    """
    library: str
    interfaces: tuple[str, ...] | None
    """Launch interfaces that the library can use: ``pmix``, ``pmi1``, ``pmi2``."""
    launcher: str | None = None
    """Path of this MPI's mpirun; ``None`` if it has no mpirun."""
    plugins: bool | None = None
    """Whether the library's components are separate files; a path of the host can hide them."""
    markers: tuple[str, ...] = ()
    soname: str | None = None
    """The name by which programs load the library: ``libmpi.so.40``."""
    library_string: str | None = None
    """The text that ``MPI_Get_library_version`` returns, if the library contains the complete text."""
    device: str | None = None
    """MPICH's device and its network modules, the preferred one first: ``ch4:ucx,ofi``."""
    own_shm: bool | None = None
    """Whether MPICH's ch4 has its own shared memory. A build with only UCX has none, and ranks of one node
    use UCX (pmodels/mpich:src/mpid/ch4/subconfigure.m4).
    """
    components: dict[str, tuple[str, ...]] = {}
    """Open MPI framework → components (``{"btl": ("self", "tcp", "vader")}``), built in or as files."""
    how: dict[str, str] = {}
    """Launch interface → its source: ``linked`` (the library's own code or a linked library), or ``component
    NAME`` for a plugin.
    """
    prefix: str | None = None
    """The folder of the installation: ``/usr``, ``/opt/venv``."""
    built_for: str | None = None
    """The missing folder in which a relocated Open MPI searches its plugins, if the image sets no other
    folder.
    """
    led_by: dict[str, str] = {}
    """The variable that names the real folder of the components, and its value: ``{"OPAL_PREFIX":
    "/opt/hpcx/ompi"}``.
    """
    needs: tuple[str, ...] = ()
    """Sonames of every library that the image's loader loads with this library; sorted."""
    lacks: tuple[str, ...] = ()
    """The libraries of ``needs`` that the image's loader does not find."""
    pmix: str | None = None
    """Release of the PMIx client of an additional MPI. For the first MPI,
    :class:`~toolkit.model.facts.ImageFacts` has the release.
    """
    fabric_asked: str | None = None
    """Newest interface version of libfabric that the library needs: ``1.8`` for ``FABRIC_1.8``. ``None`` if
    it needs no libfabric, or if its own DT_RPATH finds libfabric before LD_LIBRARY_PATH does.
    """
