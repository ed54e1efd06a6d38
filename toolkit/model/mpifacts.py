"""Facts about the MPI libraries of hosts and images."""

import msgspec


class HostMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI installation of a host: its launcher, and its library, which toolkit can mount into a container.

    Unknown fields are ``None``. ``launcher`` is the path of ``mpirun`` or ``mpiexec``; it is empty for a
    library without a launcher.
    """

    implementation: str
    version: str | None
    launcher: str
    lacks: tuple[str, ...] = ()
    """Libraries that the loader did not find when the probe ran the launcher with ``--version``."""
    leaks: tuple[str, ...] | None = None
    """Names of the variables that the launcher sets for its ranks and whose values contain paths of the
    installation.
    """
    pmix: str | None = None
    """Version of the launcher's PMIx server."""
    prefix: str | None = None
    """The folder of the installation."""
    library: str | None = None
    """The real path of libmpi."""
    soname: str | None = None
    interfaces: tuple[str, ...] | None = None
    device: str | None = None
    """MPICH's device (its communication layer) with its network modules, such as ``ch4:ofi,ucx``."""
    own_shm: bool | None = None
    """Whether MPICH's device ch4 has its own shared-memory transport."""
    needs: tuple[str, ...] | None = None
    """Sonames of all libraries that the loader loads with libmpi, except the C library."""
    components: dict[str, tuple[str, ...]] | None = None
    """MCA framework (a type of plugin in Open MPI) → names of the framework's components, which are built in
    or in separate files. The mapping has only frameworks that connect ranks or send messages.
    """
    components_need: dict[str, tuple[str, ...]] | None = None
    """Component in a separate file, such as ``pmix_ext3x`` → sonames of the libraries that the loader loads
    with the component and that are not in ``needs``.
    """
    places: dict[str, str] | None = None
    """Soname → folder, for each library in ``needs`` and ``components_need`` that the probe found."""
    folders: tuple[str, ...] | None = None
    """The folders of the libraries in ``needs`` and ``components_need``; the folder of libmpi is first."""
    outside: tuple[str, ...] | None = None
    """The libraries in ``needs`` and ``components_need`` that are not below ``prefix``."""
    ucx: str | None = None
    """Version of the UCX that the loader loads with libmpi."""
    fabric: str | None = None
    """Newest interface version of the libfabric that libmpi loads, such as ``1.7`` for ``FABRIC_1.7``."""
    glibc_needed: str | None = None
    """Minimum glibc version that libmpi and the libraries that toolkit mounts with libmpi need."""
    plugins: str | None = None
    """The folder of the MPI's component files; ``None`` if the MPI has no component files."""
    relocatable: bool | None = None
    """Whether libmpi finds its files if toolkit mounts libmpi into the container at a different path."""


class ImageMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library in an image, and the launch interfaces that the library can use.

    ``markers`` are strings in the library, such as ``PMIX_RANK``, that show how the library behaves.
    """

    implementation: str
    version: str | None
    """Release of the library. For a library that is derived from Open MPI or MPICH, this is the release of
    Open MPI or MPICH.
    """
    library: str
    interfaces: tuple[str, ...] | None
    """Launch interfaces that the library can use: ``pmix``, ``pmi1``, ``pmi2``."""
    launcher: str | None = None
    """Path of this MPI's mpirun in the image; ``None`` if this MPI has no mpirun."""
    plugins: bool | None = None
    """Whether the library's components are separate files. If the host sets a variable such as OPAL_PREFIX to
    a host path, the library may not find these files.
    """
    markers: tuple[str, ...] = ()
    soname: str | None = None
    """The name by which programs load the library: ``libmpi.so.40``."""
    library_string: str | None = None
    """The text that ``MPI_Get_library_version`` returns, if the library contains the complete text."""
    device: str | None = None
    """MPICH's device (its communication layer) with its network modules, such as ``ch4:ucx,ofi``; MPICH
    prefers the first module.
    """
    own_shm: bool | None = None
    """Whether MPICH's device ch4 has its own shared-memory transport. If UCX is the only network module, ch4
    has no shared-memory transport, and ranks on the same node communicate through UCX
    (pmodels/mpich:src/mpid/ch4/subconfigure.m4).
    """
    components: dict[str, tuple[str, ...]] = {}
    """MCA framework (a type of plugin in Open MPI) → names of the framework's components, which are built in
    or in separate files: ``{"btl": ("self", "tcp", "vader")}``.
    """
    how: dict[str, str] = {}
    """Launch interface → the code that provides the interface: ``linked`` (the library itself or a library
    linked to it) or ``component NAME`` (a plugin).
    """
    prefix: str | None = None
    """The folder of the installation: ``/usr``, ``/opt/venv``."""
    built_for: str | None = None
    """The wrong folder in which a moved Open MPI looks for its plugins. The configuration of Open MPI's
    build, or OPAL_PREFIX in the image, names this folder, but the plugins are in another folder. ``None`` if
    the MPI is not a moved Open MPI.
    """
    led_by: dict[str, str] = {}
    """The variable that the job must set so that a moved Open MPI finds its plugins, with the correct value:
    ``{"OPAL_PREFIX": "/opt/hpcx/ompi"}``.
    """
    needs: tuple[str, ...] = ()
    """Sonames, in alphabetical order, of all libraries that this library needs directly or indirectly."""
    lacks: tuple[str, ...] = ()
    """The libraries in ``needs`` that the image's loader does not find."""
    pmix: str | None = None
    """Release of this MPI's PMIx client; ``None`` for the MPI in the field ``mpi`` of
    :class:`~toolkit.model.facts.ImageFacts`, whose field ``pmix`` contains the release for that MPI.
    """
    fabric_asked: str | None = None
    """Newest interface version of libfabric that the library needs, such as ``1.8`` for ``FABRIC_1.8``.

    ``None`` if the library needs no libfabric. Also ``None`` if the library has a DT_RPATH but no
    DT_RUNPATH. ld.so searches DT_RPATH before LD_LIBRARY_PATH, so the host's libfabric cannot replace the
    image's libfabric.
    """
