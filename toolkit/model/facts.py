"""Facts that toolkit reads from a host or an image, and the evidence for each fact.

If a field is ``None``, one of two tables contains the reason. The table ``absent`` lists things that do not
exist; the table ``unknown`` lists facts that toolkit could not read. The table ``evidence`` contains the
source and the value of each fact, such as ``"srun --mpi=list: pmix_v5 pmi2"`` for ``slurm.mpi_types``. The
keys of these tables are dotted names. The *probe* is the script that collects a host's facts.
"""

from typing import Annotated

import msgspec

from toolkit.model.mpifacts import HostMpi, ImageMpi

Count = Annotated[int, msgspec.Meta(ge=0)]
"""A number of items or bytes, 0 or more."""
Limit = Annotated[int, msgspec.Meta(ge=-1)]
"""A number of items or bytes; -1 means no limit."""


class _Cited(msgspec.Struct, frozen=True, kw_only=True):
    evidence: dict[str, str] = {}
    absent: dict[str, str] = {}
    unknown: dict[str, str] = {}

    def cite(self, name: str) -> str:
        """Return the evidence for the field ``name``, or the reason why the fact is absent or unknown.

        A fact from a file that a user wrote by hand has no evidence. For such a fact, return its name and
        value, as in ``glibc: 2.36``.
        """
        for book in (self.evidence, self.absent):
            if name in book:
                return book[name]
        value = None if name in self.unknown else _in_words(_value(self, name))
        return (
            f"{name}: {value or 'not known, ' + self.unknown.get(name, 'the probe did not read this fact')}"
        )


def _value(facts: object, name: str) -> object:
    """Return the value of a dotted field name; ``mpis.soname`` is the field ``soname`` of the first MPI."""
    value = facts
    for part in name.split("."):
        value = getattr(value[0] if isinstance(value, tuple) and value else value, part, None)
    return value


def _in_words(value: object) -> str:
    """Return the value of a field as text; empty for ``None``."""
    if isinstance(value, tuple):
        return ", ".join(_in_words(one) for one in value) or "none"
    if isinstance(value, msgspec.Struct):
        named = (getattr(value, field, None) for field in ("implementation", "name", "version"))
        return " ".join(text for text in named if text)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


class SlurmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about Slurm."""

    version: str | None = None
    """Version of Slurm, as ``sinfo --version`` prints it."""
    mpi_types: tuple[str, ...] | None = None
    """The MPI types that ``srun --mpi=list`` prints: ``pmix``, ``pmix_v4`` (a PMIx plugin), ``pmi2``."""
    mpi_default: str | None = None
    """The MPI type that srun uses without ``--mpi`` (MpiDefault)."""
    nodes: Count | None = None
    partitions: tuple[str, ...] | None = None
    settings: dict[str, str] = {}
    """Slurm's settings for containers and MPI, from ``scontrol show config``."""


class ContainerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """A container runtime on a host; ``setuid`` is ``None`` if toolkit could not examine the installation."""

    name: str
    version: str
    """The release; empty if toolkit cannot parse the version text. ``name`` is then the file name of the
    runtime's program, such as ``apptainer``.
    """
    path: str
    setuid: bool | None = None
    """True if the runtime's program has the setuid bit and belongs to root. Such a runtime can ask the kernel
    to mount images, unless the runtime's release or settings forbid these mounts.
    """
    settings: dict[str, str] = {}
    """Settings that change how containers start, such as ``mount tmp`` in ``apptainer.conf``."""
    unbound: tuple[str, ...] = ()
    """Bind mounts in ``apptainer.conf`` (``SRC[:DST[:OPTS]]``) whose source is missing on the host."""
    seen: bool = True
    """True if the probe found the runtime on the host. If false, toolkit assumes that the site profile's
    modules load the runtime, or that a path in the site profile names it; its release is then unknown.
    """


class HostFacts(_Cited, frozen=True, kw_only=True):
    """The facts about one machine, or about a group of nodes with equal facts."""

    schema: str = "toolkit.host/1"
    place: str
    architecture: str | None = None
    """Processor architecture, as ``uname -m`` prints it: ``x86_64``."""
    kernel: str | None = None
    """Kernel release, as ``uname -r`` prints it."""
    distribution: str | None = None
    """Name and release of the operating system from ``/etc/os-release``: ``rhel 9.4``."""
    glibc: str | None = None
    """Version of the host's C library."""
    slurm: SlurmFacts | None = None
    """Facts about Slurm; listed in ``absent`` if Slurm's commands do not exist."""
    schedulers: tuple[str, ...] | None = None
    """Schedulers besides Slurm whose commands exist: ``pbs``, ``lsf``, ``flux``, ``grid-engine``."""
    pmix: str | None = None
    """Version of the libpmix that Slurm's PMIx plugin loads. Without Slurm: version of the host's libpmix."""
    mpis: tuple[HostMpi, ...] | None = None
    """MPI installations whose launchers are on PATH, in the order of PATH; may be empty."""
    folder_mpis: tuple[HostMpi, ...] | None = None
    """MPI libraries without an mpirun on PATH: in Cray's folders, in folders that environment modules name
    in variables, and in LD_LIBRARY_PATH. The field ``launcher`` of each entry is empty.
    """
    runtime: ContainerRuntime | None = None
    """The preferred container runtime: Apptainer or Singularity if on PATH; otherwise, another runtime."""
    other_runtimes: tuple[ContainerRuntime, ...] = ()
    """The container runtimes on the host except ``runtime``."""
    user_namespaces: bool | None = None
    """Whether an ordinary user can create user namespaces, which an unprivileged runtime needs."""
    user_namespaces_limit: Count | None = None
    """Maximum number of user namespaces that the kernel allows each user (``user.max_user_namespaces``)."""
    squashfuse: str | None = None
    """Path of squashfuse, which mounts a SIF without privileges."""
    fuse3: str | None = None
    """Release of libfuse 3, which squashfuse uses."""
    fuse_device: bool | None = None
    """Whether the user can open ``/dev/fuse``, through which squashfuse mounts an image."""
    kernel_mounts: tuple[str, ...] | None = None
    """Which of the features ``loop`` and ``squashfs`` the kernel has; it needs both to mount a SIF."""
    gpu_driver: str | None = None
    """Version of the NVIDIA driver; listed in ``absent`` if the host has no GPU."""
    gpus: tuple[str, ...] | None = None
    """Names of the GPUs as nvidia-smi prints them, one entry for each GPU."""
    mig: tuple[str, ...] | None = None
    """The MIG profile, such as ``1g.5gb``, of each MIG instance; empty if the GPUs have no MIG instances."""
    gpu_container_cli: str | None = None
    """Path of ``nvidia-container-cli``, with which enroot passes GPUs to containers."""
    gpu_mismatch: bool = False
    """Whether nvidia-smi reports that the driver's kernel module and libraries have different releases."""
    amd_gpus: tuple[str, ...] | None = None
    """One entry for each AMD GPU: its architecture (``gfx90a``), or its PCI ids (``1002:7408``) if the probe
    ran in a job without GPUs. Empty if the host has no AMD GPU.
    """
    gpu_libraries_glibc: str | None = None
    """Newest glibc version that the GPU driver's libraries (which Apptainer's ``--nv`` mounts) need."""
    cpu_level: str | None = None
    """The newest x86-64 level that the processor fully supports: ``x86-64-v1`` to ``x86-64-v4``."""
    cpu_vendor: str | None = None
    """Vendor of the processor: ``GenuineIntel``, ``AuthenticAMD``."""
    cpu_threads: Count | None = None
    """Number of hardware threads per core, including threads that the kernel has switched off."""
    shm: Count | None = None
    """Size of /dev/shm in bytes."""
    locked_memory: Limit | None = None
    """Amount of memory, in bytes, that a process may lock; -1 means no limit."""
    interfaces: tuple[str, ...] | None = None
    """Names of the network interfaces, except the loopback interface."""
    interfaces_routed: tuple[str, ...] = ()
    """Network interfaces that are up and have a route to other machines; empty if unknown."""
    libfabric: str | None = None
    """Path of the host's ``libfabric.so.1``, which toolkit can mount if the image has no libfabric."""
    infiniband: tuple[str, ...] | None = None
    """Devices in ``/sys/class/infiniband`` (InfiniBand, Omni-Path, RoCE) that have an active port."""
    link_layers: dict[str, str] = {}
    """Device in ``infiniband`` → link layer: ``InfiniBand``, or ``Ethernet`` for RoCE. The table does not
    contain devices with an unknown link layer.
    """
    fabrics: tuple[str, ...] | None = None
    """Fast networks except InfiniBand and RoCE: ``slingshot``, ``aries``, ``omni-path``, ``efa``."""
    ptrace_scope: Count | None = None
    """Value of ``kernel.yama.ptrace_scope``; 0 allows cross-memory attach between a user's processes."""
    xpmem: bool | None = None
    """Whether the kernel module xpmem is loaded, which lets ranks on a node access each other's memory."""
    mca_params: dict[str, str] | None = None
    """Settings in ``~/.openmpi/mca-params.conf`` and ``~/.pmix/mca-params.conf``; empty if neither file
    exists. If the runtime mounts the home folder, the MPI library in the container reads these files too.
    """
    user_packages: tuple[str, ...] | None = None
    """Python versions (``3.11``) for which ``~/.local/lib`` has a package folder; may be empty."""
    user_site: dict[str, tuple[str, ...]] = {}
    """Python version → packages in ``~/.local`` that change how ranks start or compute: ``mpi4py 4.1.2``."""
    munge: bool | None = None
    """Whether the host has the socket of munge, with which PMIx's component psec/munge authenticates."""
    tmpdir: str | None = None
    """Value of TMPDIR, with a placeholder for the user's name; listed in ``absent`` if TMPDIR is not set."""
    tmpdir_usable: bool | None = None
    """Whether the folder in TMPDIR exists and is writable; listed in ``absent`` if TMPDIR is not set."""
    compute_nodes: tuple[str, ...] | None = None
    """The compute nodes with these facts: the largest group of compute nodes with equal facts. If no compute
    node answered, ``compute_nodes`` is ``None``, and all facts are from the login node.
    """
    differs: dict[str, str] = {}
    """Facts that differ between compute nodes: dotted name → values by node (``"node[1-2]: 2.36; node3:
    2.28"``).
    """
    environment: dict[str, str] = {}
    """Variables that a job inherits and that change how MPI starts in a container. For some variables,
    such as ``LD_PRELOAD``, the probe reports only the name; their value here is empty.
    """


class ImageProgram(msgspec.Struct, frozen=True, kw_only=True):
    """The program that the user's command starts in an image. If toolkit can determine this program, all MPI
    facts of the image are about the MPI library that this program loads.
    """

    command: tuple[str, ...]
    path: str = ""
    """Path of the last program that the command starts; empty if the program is not in the image."""
    chain: tuple[str, ...] = ()
    """All files that the command starts, in order, such as a wrapper script, an interpreter, the program."""
    python: str = ""
    """If the program is a Python script: path of the Python that runs this script; otherwise, empty."""
    mpi: bool = False
    """True if the program loads an MPI library, or needs an MPI library that the loader does not find."""
    needs: str = ""
    """The soname of the MPI library that the program needs: ``libmpi.so.40``."""
    linked: bool = False
    """True if the program contains a statically linked MPI library."""
    clears: str = ""
    """The file in ``chain`` that runs the program with ``env -i``, which removes the launcher's variables."""
    filters: str = ""
    """The script in ``chain`` that passes only some of its environment variables to the next program."""


class ImageFacts(_Cited, frozen=True, kw_only=True):
    """Facts that toolkit reads from the files of an image, without starting a container."""

    schema: str = "toolkit.image/1"
    path: str
    format: str
    """Format of the image: ``sif``, ``oci-sif``, ``squashfs``, ``sandbox``, or a Docker or OCI format."""
    compression: str | None = None
    """Compression of the image's squashfs: ``gzip``, ``zstd``, ``lz4``, ``xz``, ``lzo``. Listed in ``absent``
    if the image contains no squashfs.
    """
    digest: str | None = None
    architecture: str | None = None
    """Processor architecture of the image's programs."""
    distribution: str | None = None
    """Name and release of the image's distribution from ``/etc/os-release``: ``debian 12 (bookworm)``."""
    glibc: str | None = None
    """Version of the image's glibc; listed in ``absent`` if the image has another C library."""
    glibc_needed: str | None = None
    """Newest ``GLIBC_`` symbol version that any examined program or library needs."""
    cpu_level: str | None = None
    """Highest x86-64 level that a program or library in the image declares as required: ``x86-64-v3``."""
    mpi: ImageMpi | None = None
    """The MPI library that the image's programs load."""
    other_mpis: tuple[ImageMpi, ...] = ()
    mpirun: str | None = None
    """Real path of the first mpirun on the image's PATH, which may belong to an MPI other than ``mpi``."""
    pmix: str | None = None
    """Version of the PMIx client, which is a separate library or part of the MPI library."""
    pmix_components: dict[str, tuple[str, ...]] = {}
    """PMIx framework (type of plugin: ``psec``, ``gds``, ``ptl``) → the PMIx client's plugins of this type,
    built in or in separate files.
    """
    pmix_plugins: bool | None = None
    """Whether some plugins that the PMIx client needs are separate files. If a variable from the host changes
    the plugin path, the client does not find these files.
    """
    ucx: str | None = None
    """Version of UCX, through which some MPI libraries send messages."""
    ucx_transports: tuple[str, ...] | None = None
    """Transport modules of the image's UCX: always ``tcp``, sometimes ``ib``, ``cma``, ``cuda``."""
    libfabric: str | None = None
    """Path of libfabric in the image."""
    libfabric_version: str | None = None
    """Release of the libfabric whose path is in the field ``libfabric``."""
    libfabric_providers: tuple[str, ...] | None = None
    """Providers of libfabric, or of MPICH's built-in libfabric: ``tcp``, ``verbs``, ``psm2``, ``cxi``."""
    providers_unsearched: str | None = None
    """Folder with libfabric's provider files, if libfabric searches it only when ``FI_PROVIDER_PATH`` names
    it. Empty if libfabric searches the folder without this variable, or has built-in providers.
    """
    verbs_providers: tuple[str, ...] | None = None
    """User-space drivers for libibverbs: ``mlx5``, ``hfi1verbs``; empty if the image has no such driver."""
    hwloc: str | None = None
    programs: dict[str, str] = {}
    """Path of a program or Python extension that needs an MPI → the MPI library that the program loads. The
    value is empty if the image's loader does not find this library.
    """
    programs_need: dict[str, str] = {}
    """Program whose MPI library the loader does not find → soname of this library: ``libmpi.so.40``."""
    program: ImageProgram | None = None
    """The program that the user's command starts; listed in ``absent`` if there is no command."""
    hidden: dict[str, str] = {}
    """Program or MPI library of the image that a mount hides → mount point that hides the file."""
    refused: dict[str, str] = {}
    """Program that the loader refuses because of a missing symbol or version → the loader's message."""
    programs_otherwise: dict[str, str] = {}
    """Program → MPI library that the program loads if LD_LIBRARY_PATH contains no folder of the image. The
    table lists a program only if this MPI library differs from the program's library in ``programs``.
    """
    programs_fixed: tuple[str, ...] = ()
    """Programs that find their MPI through DT_RPATH, which the loader reads before LD_LIBRARY_PATH."""
    libraries: tuple[str, ...] | None = None
    """Sorted sonames of all libraries that the loader finds for a program without RPATH: in LD_LIBRARY_PATH,
    in ldconfig's cache and in the system's folders.
    """
    ssh: str | None = None
    """Path of the program with which the image's launcher starts ranks on other nodes: ssh, or the program
    that Open MPI's settings name. Empty if the settings limit mpirun to one node.
    """
    python: str | None = None
    """Version of Python."""
    python_reads_home: bool = True
    """Whether the image's Python loads packages from ``~/.local``. In a virtual environment, Python loads
    packages from ``~/.local`` only if the environment includes the system's packages.
    """
    tensorflow: str | None = None
    """Version of TensorFlow."""
    tensorflow_cuda: str | None = None
    """CUDA version that TensorFlow was built for; listed in ``absent`` for a build without CUDA."""
    tensorflow_cudnn: str | None = None
    """cuDNN version that TensorFlow was built for."""
    pytorch: str | None = None
    """Version of PyTorch."""
    pytorch_cuda: str | None = None
    """CUDA version that PyTorch was built for; listed in ``absent`` for a build without CUDA."""
    pytorch_rocm: str | None = None
    """ROCm version that PyTorch was built for; listed in ``absent`` for a build without ROCm."""
    jax: str | None = None
    """Version of JAX."""
    cuda: str | None = None
    """Version of the CUDA runtime library in the image."""
    cudnn: str | None = None
    """Version of the cuDNN library."""
    nccl: str | None = None
    """Version of the NCCL library."""
    nccl_ofi_found: bool | None = None
    """Whether the loader finds the plugin aws-ofi-nccl; ``None`` if the image lacks this plugin, or in
    facts from older toolkit releases."""
    nccl_ofi: str | None = None
    """Path of the plugin aws-ofi-nccl, with which NCCL communicates through libfabric."""
    cuda_compat: str | None = None
    """Driver version of the image's package ``cuda-compat``, NVIDIA's forward-compatibility package."""
    cuda_compat_folders: tuple[str, ...] = ()
    """All paths of the folder with cuda-compat's libcuda, including paths over symbolic links."""
    driver_searched: bool | None = None
    """Whether a script in ``/.singularity.d/env`` adds the folder of the GPU driver to LD_LIBRARY_PATH.
    ``None`` for Docker and OCI images, which lack such scripts, and in facts from older toolkit releases.
    """
    horovod: str | None = None
    """Version of Horovod."""
    horovod_built: tuple[str, ...] | None = None
    """Operations that Horovod's native libraries support: ``mpi``, ``gloo``, ``nccl``, ``cuda``."""
    horovod_frameworks: tuple[str, ...] | None = None
    """Frameworks for which Horovod has a native library: ``tensorflow``, ``torch``, ``mxnet``."""
    horovod_tensorflow: str | None = None
    """TensorFlow version that Horovod was built against; ``None`` if Horovod's library does not name it."""
    mpi4py: str | None = None
    """Version of mpi4py."""
    labels: dict[str, str] = {}
    environment: dict[str, str] = {}
    """Variables that the image sets for its programs; only variables that affect MPI or search paths."""
    settings: dict[str, str] = {}
    """Settings in configuration files of the image's Open MPI, PMIx and PRRTE (Open MPI's launcher). Each key
    is the variable with the effect of the setting, as in ``{"OMPI_MCA_btl_tcp_if_include": "ib0"}``.
    """
    entrypoint: tuple[str, ...] | None = None
    """Entry point and command of the image, from its metadata. ``apptainer run`` starts the entry point;
    ``apptainer exec`` does not.
    """
    entry_script: str = ""
    """Path of the entry point, if it is a shell script that sets variables and then starts a command."""
    entry_sets: dict[str, str] = {}
    """Variables that ``entry_script`` sets and that affect MPI or search paths."""
    stack: dict[str, object] | None = None
    """Versions in ``/opt/toolkit/stack.json`` of an image that toolkit built; ``None`` without this file."""
    disagreements: tuple[str, ...] = ()
    """Differences between ``stack`` and the versions that toolkit found, one line for each difference."""

    def component_versions(self) -> dict[str, str]:
        """Return the version of each component in the image, by the component's name in recipes."""
        mpi = self.mpi
        known: dict[str, str | None] = {
            "tensorflow": self.tensorflow,
            "torch": self.pytorch,
            "horovod": self.horovod,
            "openmpi": mpi.version if mpi and mpi.implementation == "openmpi" else None,
            "mpich": mpi.version if mpi and mpi.implementation == "mpich" else None,
            "pmix": self.pmix,
            "ucx": self.ucx,
            "mpi4py": self.mpi4py,
            "cuda": self.cuda,
            "cudnn": self.cudnn,
            "nccl": self.nccl,
            "python": self.python,
        }
        return {name: version for name, version in known.items() if version}
