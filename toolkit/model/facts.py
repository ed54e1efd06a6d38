"""The facts read from a host or an image, and the evidence for each fact; no conclusions.

A field that is ``None`` has its reason under the same dotted name, in one of two tables: ``absent`` (it does
not exist) or ``unknown`` (it could not be read). ``evidence`` maps a dotted name to the line that it was read
from: ``"srun --mpi=list: pmix_v5 pmi2"``.
"""

from typing import Annotated

import msgspec

from toolkit.model.mpifacts import HostMpi, ImageMpi

Count = Annotated[int, msgspec.Meta(ge=0)]
"""A number of things or of bytes; no probe writes another kind of number."""
Limit = Annotated[int, msgspec.Meta(ge=-1)]
"""A number of things or of bytes; -1 means no limit."""


class _Cited(msgspec.Struct, frozen=True, kw_only=True):
    evidence: dict[str, str] = {}
    absent: dict[str, str] = {}
    unknown: dict[str, str] = {}

    def cite(self, name: str) -> str:
        """Return the line of evidence for a field, or why there is none; facts written by hand have none."""
        for book in (self.evidence, self.absent):
            if name in book:
                return book[name]
        value = None if name in self.unknown else _in_words(_value(self, name))
        return f"{name}: {value or 'not known, ' + self.unknown.get(name, 'the probe did not ask for it')}"


def _value(facts: object, name: str) -> object:
    """Return the value of a dotted name; a field of a list is the first member's."""
    value = facts
    for part in name.split("."):
        value = getattr(value[0] if isinstance(value, tuple) and value else value, part, None)
    return value


def _in_words(value: object) -> str:
    """Return a value as a line of evidence shows it, empty if there is none."""
    if isinstance(value, tuple):
        return ", ".join(_in_words(one) for one in value) or "none"
    if isinstance(value, msgspec.Struct):
        named = (getattr(value, field, None) for field in ("implementation", "name", "version"))
        return " ".join(text for text in named if text)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


class SlurmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``mpi_types`` are the names that ``srun --mpi=list`` prints, with the versions of PMIx plugins."""

    version: str | None = None
    """Version of Slurm, as ``sinfo --version`` prints it."""
    mpi_types: tuple[str, ...] | None = None
    """What ``srun --mpi=list`` prints: ``pmix``, ``pmi2``, ``none``."""
    mpi_default: str | None = None
    """What srun offers if ``--mpi`` is not given."""
    nodes: Count | None = None
    partitions: tuple[str, ...] | None = None
    settings: dict[str, str] = {}
    """The lines of ``scontrol show config`` that matter to containers and MPI."""


class ContainerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """``setuid`` is ``None`` if the installation could not be examined; ``settings`` are its own."""

    name: str
    version: str
    """The release; empty if the version text is not understood. ``name`` is then the program's name."""
    path: str
    setuid: bool | None = None
    """The runtime is installed with setuid root; the kernel then mounts images, if release and settings allow
    it.
    """
    settings: dict[str, str] = {}
    """Lines of apptainer.conf that say how containers start; a missing setting has its default."""
    unbound: tuple[str, ...] = ()
    """Lines ``bind path`` of its settings, ``SRC[:DST[:OPTS]]``, whose source this machine does not have."""
    seen: bool = True
    """toolkit found the runtime; otherwise a module or a profile provides it, and a common release is
    assumed.
    """


class HostFacts(_Cited, frozen=True, kw_only=True):
    """The facts of one group of equal machines of a cluster, or of one machine."""

    schema: str = "toolkit.host/1"
    place: str
    architecture: str | None = None
    """What ``uname -m`` prints."""
    kernel: str | None = None
    """What ``uname -r`` prints."""
    distribution: str | None = None
    """Name and release of its operating system, as /etc/os-release says: ``rhel 9.4``."""
    glibc: str | None = None
    """Version of the host's C library."""
    slurm: SlurmFacts | None = None
    """``None`` and ``absent`` if Slurm's commands do not exist."""
    schedulers: tuple[str, ...] | None = None
    """Job schedulers beside Slurm whose commands were found: ``pbs``, ``lsf``, ``flux``, ``grid-engine``."""
    pmix: str | None = None
    """Version of the libpmix that Slurm's plugin (or else any program) would load."""
    mpis: tuple[HostMpi, ...] | None = None
    """Launchers on PATH, in PATH order; may be empty."""
    folder_mpis: tuple[HostMpi, ...] | None = None
    """MPI libraries that belong to no mpirun on PATH: in the folders of Cray's MPI, of modules' variables
    and of LD_LIBRARY_PATH; ``launcher`` is empty.
    """
    runtime: ContainerRuntime | None = None
    """The container runtime in use: Apptainer or Singularity if one is on PATH, otherwise another runtime."""
    other_runtimes: tuple[ContainerRuntime, ...] = ()
    """Container runtimes that were found in addition."""
    user_namespaces: bool | None = None
    """An ordinary user can create user namespaces, which an unprivileged runtime needs."""
    user_namespaces_limit: Count | None = None
    """How many user namespaces the kernel gives one user (``user.max_user_namespaces``)."""
    squashfuse: str | None = None
    """Path of the program that mounts a SIF without privileges."""
    fuse3: str | None = None
    """Release of libfuse 3, by which that program mounts."""
    kernel_mounts: tuple[str, ...] | None = None
    """Which of ``loop`` and ``squashfs`` the kernel has; it needs both to mount a SIF itself."""
    gpu_driver: str | None = None
    """NVIDIA driver version; ``absent`` if there is no GPU."""
    gpus: tuple[str, ...] | None = None
    """Names of the GPUs, one an entry, as nvidia-smi prints them."""
    mig: tuple[str, ...] | None = None
    """Parts that GPUs are divided into (MIG), one an entry, by profile: ``1g.5gb``; empty if there are
    none.
    """
    gpu_container_cli: str | None = None
    """Path of ``nvidia-container-cli``, by which enroot hands in GPUs."""
    gpu_mismatch: bool = False
    """nvidia-smi reports that the driver in the kernel has another release than its libraries."""
    amd_gpus: tuple[str, ...] | None = None
    """AMD GPUs, one an entry: the architecture that programs are compiled for (``gfx90a``), or the numbers
    on the bus (``1002:7408``) if a job without GPUs may not read it; empty if there is none.
    """
    gpu_libraries_glibc: str | None = None
    """Newest version of the C library that a driver library bound by ``--nv`` needs."""
    cpu_level: str | None = None
    """``x86-64-v1`` to ``x86-64-v4``: the newest level that the processor fully supports."""
    cpu_vendor: str | None = None
    """Vendor of the processor, as in ``GenuineIntel``, ``AuthenticAMD``."""
    cpu_threads: Count | None = None
    """Threads of each core, including threads that the kernel has switched off."""
    shm: Count | None = None
    """Size of /dev/shm in bytes."""
    locked_memory: Limit | None = None
    """Bytes that a process may lock; -1 if there is no limit."""
    interfaces: tuple[str, ...] | None = None
    """Network interfaces, without the loopback."""
    interfaces_routed: tuple[str, ...] = ()
    """The interfaces that are up and have a route to other machines; empty if unknown."""
    libfabric: str | None = None
    """Path of the host's libfabric.so.1, which can be mounted into an image without libfabric."""
    infiniband: tuple[str, ...] | None = None
    """Devices of InfiniBand, Omni-Path or RoCE (/sys/class/infiniband) with an active port; empty if there
    is none.
    """
    link_layers: dict[str, str] = {}
    """Link layer of each device's port: ``InfiniBand``, or ``Ethernet``, which means RoCE; unknown devices
    are left out.
    """
    fabrics: tuple[str, ...] | None = None
    """Other fast networks that were seen: ``slingshot``, ``aries``, ``omni-path``, ``efa``."""
    ptrace_scope: Count | None = None
    """Yama's setting; 0 allows cross-memory attach between processes of one user."""
    xpmem: bool | None = None
    """The kernel module xpmem is loaded, by which a rank maps the memory of another."""
    mca_params: dict[str, str] | None = None
    """Settings of ``~/.openmpi/mca-params.conf`` and ``~/.pmix/mca-params.conf``, which a container obeys
    if the home folder is mounted; empty if there is no such file.
    """
    user_packages: tuple[str, ...] | None = None
    """Python versions (``3.11``) with a folder of packages below ``~/.local/lib``; empty if none has one."""
    user_site: dict[str, tuple[str, ...]] = {}
    """Python version → packages there that change how ranks start or compute: ``mpi4py 4.1.2``."""
    munge: bool | None = None
    """A munge socket exists, by which PMIx's psec/munge authenticates."""
    tmpdir: str | None = None
    """The folder in TMPDIR, with the user's name replaced; ``absent`` if it is not set."""
    tmpdir_usable: bool | None = None
    """Whether that folder exists and is writable; ``absent`` if TMPDIR is not set."""
    compute_nodes: tuple[str, ...] | None = None
    """The equal compute nodes from which the facts about ranks were read; ``None`` if no compute node
    answered, and all facts are from the machine that was contacted first.
    """
    differs: dict[str, str] = {}
    """Facts that differ between compute nodes: dotted name → value by node (``"node[1-2]: 2.36; node3:
    2.28"``).
    """
    environment: dict[str, str] = {}
    """Variables that a job inherits and that change how MPI starts in a container; no others.

    For some variables the probe reports only the name; then the value here is empty.
    """


class ImageProgram(msgspec.Struct, frozen=True, kw_only=True):
    """What a command starts in an image; the other facts about MPI concern this program."""

    command: tuple[str, ...]
    path: str = ""
    """File of the program that finally runs; empty if it is not in the image."""
    chain: tuple[str, ...] = ()
    """Every file that is started on the way: a wrapper script, an interpreter, the program."""
    python: str = ""
    """Path of the Python that runs a script; empty for another program."""
    mpi: bool = False
    """The program loads an MPI, or needs an MPI that the loader does not find."""
    needs: str = ""
    """The MPI library that the program names: ``libmpi.so.40``."""
    linked: bool = False
    """An MPI is linked into the program itself."""


class ImageFacts(_Cited, frozen=True, kw_only=True):
    """Facts that toolkit read from an image without starting it; ``stack`` is the image's own description."""

    schema: str = "toolkit.image/1"
    path: str
    format: str
    """``sif``, ``oci-sif``, ``squashfs``, ``sandbox``, or a format of Docker and OCI."""
    compression: str | None = None
    """Compression of the file system in a SIF: ``gzip``, ``zstd``, ``lz4``, ``xz``, ``lzo``; otherwise
    ``absent``.
    """
    digest: str | None = None
    architecture: str | None = None
    """Processor architecture of the image's programs."""
    distribution: str | None = None
    """Name and release of the image's system, as /etc/os-release says: ``debian 12 (bookworm)``."""
    glibc: str | None = None
    """Version of the image's C library; ``absent`` for a C library other than glibc."""
    glibc_needed: str | None = None
    """Newest GLIBC_ version that any program or library that was read needs."""
    cpu_level: str | None = None
    """Newest level of x86-64 that a library states as required: ``x86-64-v3``."""
    mpi: ImageMpi | None = None
    """The library that a program in the image really loads."""
    other_mpis: tuple[ImageMpi, ...] = ()
    mpirun: str | None = None
    """Real path of the first mpirun on PATH; it may belong to another MPI than ``mpi``."""
    pmix: str | None = None
    """Version of the PMIx client, a separate library or built into the MPI."""
    pmix_components: dict[str, tuple[str, ...]] = {}
    """Components of the PMIx client by framework: ``psec``, ``gds``, ``ptl``; built in or as files."""
    pmix_plugins: bool | None = None
    """Components that the PMIx client needs are files, which a path of the host can hide."""
    ucx: str | None = None
    """Version of UCX, which sends the messages of some MPIs."""
    ucx_transports: tuple[str, ...] | None = None
    """Modules of the UCX in the image: it always has ``tcp``, but not always ``ib``, ``cma``, ``cuda``."""
    libfabric: str | None = None
    """Path of libfabric, which some MPIs open only when they need it."""
    libfabric_version: str | None = None
    """Release of this libfabric."""
    libfabric_providers: tuple[str, ...] | None = None
    """Networks that this libfabric, or the one inside MPICH's library, supports: ``tcp``, ``verbs``,
    ``psm2``, ``cxi``.
    """
    providers_unsearched: str | None = None
    """Folder of that libfabric's plugins if it searches another one, unless ``FI_PROVIDER_PATH`` names it;
    empty if it searches there, or has providers built in.
    """
    verbs_providers: tuple[str, ...] | None = None
    """User-space drivers of libibverbs: ``mlx5``, ``hfi1verbs``; empty without drivers."""
    hwloc: str | None = None
    programs: dict[str, str] = {}
    """Path of a program or extension that loads an MPI → the library that it would load; empty if the
    image's loader finds none.
    """
    programs_need: dict[str, str] = {}
    """Programs whose MPI the loader does not find → the name of the library that they need:
    ``libmpi.so.40``.
    """
    program: ImageProgram | None = None
    """The program of the given command; ``None`` and ``absent`` if no command was given."""
    hidden: dict[str, str] = {}
    """Programs and MPI libraries of the image that a mount of the runtime hides → the folder of the mount."""
    refused: dict[str, str] = {}
    """Programs that the loader refuses to start because a symbol or version is missing → the loader's
    message.
    """
    programs_otherwise: dict[str, str] = {}
    """The same for an LD_LIBRARY_PATH without folders of the image; only programs that then load another
    library are listed.
    """
    programs_fixed: tuple[str, ...] = ()
    """Programs whose own search path (DT_RPATH) leads to their MPI before LD_LIBRARY_PATH does."""
    libraries: tuple[str, ...] | None = None
    """Every soname that a program without its own search folders finds: by LD_LIBRARY_PATH, ldconfig's
    list and the system's folders; sorted.
    """
    ssh: str | None = None
    """Path of the program with which a launcher inside would start remote ranks: ssh, or the program in
    the settings of the image's Open MPI; empty if they say that none is needed on one node.
    """
    python: str | None = None
    """Version of Python."""
    python_reads_home: bool = True
    """Whether this Python reads packages of ~/.local; in a virtual environment it does so only if the
    environment has the packages of its system.
    """
    tensorflow: str | None = None
    """Version of TensorFlow."""
    tensorflow_cuda: str | None = None
    """CUDA that TensorFlow was built for; ``absent`` for a build without CUDA."""
    tensorflow_cudnn: str | None = None
    """cuDNN that TensorFlow was built for."""
    pytorch: str | None = None
    """Version of PyTorch."""
    pytorch_cuda: str | None = None
    """CUDA that PyTorch was built for; ``absent`` for a build without CUDA."""
    pytorch_rocm: str | None = None
    """ROCm that PyTorch was built for; ``absent`` for a build without ROCm."""
    jax: str | None = None
    """Version of JAX."""
    cuda: str | None = None
    """Version of the CUDA runtime library in the image."""
    cudnn: str | None = None
    """Version of the cuDNN library."""
    nccl: str | None = None
    """Version of the NCCL library."""
    nccl_ofi_found: bool | None = None
    """The image's loader finds that plugin by its name; ``None`` in facts of earlier releases."""
    nccl_ofi: str | None = None
    """Path of the plugin by which NCCL sends through libfabric (aws-ofi-nccl)."""
    cuda_compat: str | None = None
    """Driver version of the forward-compatibility package (``cuda-compat``) in the image."""
    cuda_compat_folders: tuple[str, ...] = ()
    """Every name of the folder with that libcuda: ``/usr/local/cuda/compat``."""
    driver_searched: bool | None = None
    """A script in ``/.singularity.d/env`` leads programs to the driver that the runtime mounts; ``None`` for
    an image of Docker and OCI, which a runtime converts, and in facts of earlier releases.
    """
    horovod: str | None = None
    """Version of Horovod."""
    horovod_built: tuple[str, ...] | None = None
    """What Horovod's native libraries were built with: ``mpi``, ``gloo``, ``nccl``, ``cuda``."""
    horovod_frameworks: tuple[str, ...] | None = None
    """``tensorflow``, ``torch``, ``mxnet``: the frameworks that Horovod has a native library for."""
    horovod_tensorflow: str | None = None
    """The TensorFlow that Horovod's library was built against, if the library contains it."""
    mpi4py: str | None = None
    """Version of mpi4py."""
    labels: dict[str, str] = {}
    environment: dict[str, str] = {}
    """The variables that the image sets for its programs, limited to MPI and search paths."""
    settings: dict[str, str] = {}
    """Settings in files that Open MPI, PMIx and PRRTE of the image read, by the variable of the same effect:
    ``{"OMPI_MCA_btl_tcp_if_include": "ib0"}``."""
    entrypoint: tuple[str, ...] | None = None
    """The command that ``run`` starts, entry point and command together; ``exec`` skips the entry point."""
    entry_script: str = ""
    """The shell script of the entry point, if it sets variables and then starts its arguments."""
    entry_sets: dict[str, str] = {}
    """The variables that ``entry_script`` sets, as far as they concern MPI and search paths."""
    stack: dict[str, object] | None = None
    """The content of ``/opt/toolkit/stack.json``, or ``None`` if the image does not describe itself."""
    disagreements: tuple[str, ...] = ()
    """Differences between ``stack`` and the real contents, one a line."""

    def component_versions(self) -> dict[str, str]:
        """Return component → version as a recipe writes them; missing components are left out."""
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
