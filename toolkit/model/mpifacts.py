"""Facts about MPI libraries of hosts and images."""

import msgspec


class HostMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI installation of a host: its launcher, and its library, which toolkit can mount into a container.

    Unknown fields are ``None``.
    """

    implementation: str
    version: str | None
    launcher: str
    lacks: tuple[str, ...] = ()
    """Libraries that the launcher did not find when the probe ran the launcher with ``--version``."""
    leaks: tuple[str, ...] | None = None
    """Variables that the launcher sets for its ranks, and that contain paths of the installation."""
    pmix: str | None = None
    """Version of the launcher's PMIx server."""
    prefix: str | None = None
    """The folder of the installation."""
    library: str | None = None
    """The real path of libmpi."""
    soname: str | None = None
    interfaces: tuple[str, ...] | None = None
    device: str | None = None
    """MPICH's device with its network modules: ``ch4:ofi,ucx``."""
    own_shm: bool | None = None
    """Whether MPICH's device ch4 has its own shared-memory transport."""
    needs: tuple[str, ...] | None = None
    """Sonames of all libraries that the loader loads with libmpi, without the C library."""
    components: dict[str, tuple[str, ...]] | None = None
    """MCA framework (type of plugin in Open MPI) → names of Open MPI's components that connect ranks and send
    messages, built in or in separate files.
    """
    components_need: dict[str, tuple[str, ...]] | None = None
    """Component in a separate file, such as ``pmix_ext3x`` → sonames that the component loads in addition to
    ``needs``.
    """
    places: dict[str, str] | None = None
    """Soname → folder of the library, for each loaded library that the probe found."""
    folders: tuple[str, ...] | None = None
    """The folders of the libraries in ``needs`` and ``components_need``; the folder of libmpi is first."""
    outside: tuple[str, ...] | None = None
    """The libraries in ``needs`` and ``components_need`` that are not below ``prefix``."""
    ucx: str | None = None
    """Version of the UCX that the MPI loads."""
    fabric: str | None = None
    """Newest interface version of the libfabric that the MPI loads, such as ``1.7`` for ``FABRIC_1.7``."""
    glibc_needed: str | None = None
    """Newest glibc version that libmpi, or a library that a launch mounts with libmpi, needs."""
    plugins: str | None = None
    """The folder of the MPI's components, if the components are files."""
    relocatable: bool | None = None
    """Whether libmpi finds its files if a launch mounts libmpi at another path."""


class ImageMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library in an image, and the launch interfaces that it can use.

    ``markers`` are strings in the library, such as ``PMIX_RANK``, that show how the library behaves.
    """

    implementation: str
    version: str | None
    """Release of the library; for a library derived from Open MPI or MPICH, the release of Open MPI or MPICH.
    """
    library: str
    interfaces: tuple[str, ...] | None
    """Launch interfaces that the library can use: ``pmix``, ``pmi1``, ``pmi2``."""
    launcher: str | None = None
    """Path of this MPI's mpirun; ``None`` if it has no mpirun."""
    plugins: bool | None = None
    """Whether the library's components are separate files; a variable with a host path can keep the library
    from finding these files.
    """
    markers: tuple[str, ...] = ()
    soname: str | None = None
    """The name by which programs load the library: ``libmpi.so.40``."""
    library_string: str | None = None
    """The text that ``MPI_Get_library_version`` returns, if the library contains the complete text."""
    device: str | None = None
    """MPICH's device with its network modules, the preferred module first: ``ch4:ucx,ofi``."""
    own_shm: bool | None = None
    """Whether MPICH's device ch4 has its own shared-memory transport. A build with only UCX has no such
    transport, so ranks of one node use UCX (pmodels/mpich:src/mpid/ch4/subconfigure.m4).
    """
    components: dict[str, tuple[str, ...]] = {}
    """MCA framework (type of plugin in Open MPI) → Open MPI's components (``{"btl": ("self", "tcp",
    "vader")}``), built in or in separate files.
    """
    how: dict[str, str] = {}
    """Launch interface → its source: ``linked`` (the library's own code or a linked library), or ``component
    NAME`` for a plugin.
    """
    prefix: str | None = None
    """The folder of the installation: ``/usr``, ``/opt/venv``."""
    built_for: str | None = None
    """A folder that does not exist. A moved Open MPI looks for its plugins in this folder, if the image sets
    no other folder.
    """
    led_by: dict[str, str] = {}
    """The variable that gives a moved Open MPI its real folder, and the value: ``{"OPAL_PREFIX":
    "/opt/hpcx/ompi"}``.
    """
    needs: tuple[str, ...] = ()
    """Sorted sonames of all libraries that the image's loader loads with this library."""
    lacks: tuple[str, ...] = ()
    """The libraries in ``needs`` that the image's loader does not find."""
    pmix: str | None = None
    """Release of the PMIx client, only for an additional MPI. :class:`~toolkit.model.facts.ImageFacts` has
    the release for the first MPI.
    """
    fabric_asked: str | None = None
    """Newest interface version of libfabric that the library needs, such as ``1.8`` for ``FABRIC_1.8``.
    ``None`` if the library needs no libfabric, or finds libfabric through DT_RPATH, which the loader reads
    before LD_LIBRARY_PATH.
    """
