"""What was read from a host or an image, and the evidence for each fact; never what was concluded.

A field that is ``None`` has its reason under the same dotted name, in one of two books:
``absent`` (it was looked for and is not there) or ``unknown`` (it could not be read).
``evidence`` maps a dotted name to the line that it was read from: ``"srun --mpi=list: pmix_v5 pmi2"``.
"""

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
"""How many there are of something, or how many bytes; no probe writes another number."""
Limit = Annotated[int, msgspec.Meta(ge=-1)]
"""The same, where -1 says that there is no limit."""


class _Cited(msgspec.Struct, frozen=True, kw_only=True):
    evidence: dict[str, str] = {}
    absent: dict[str, str] = {}
    unknown: dict[str, str] = {}

    def cite(self, name: str) -> str:
        """Return the line of evidence for a field, or why there is none."""
        for book in (self.evidence, self.absent):
            if name in book:
                return book[name]
        return f"{name}: not known, {self.unknown.get(name, 'it was not asked')}"


class SlurmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``mpi_types`` are the names that ``srun --mpi=list`` prints, with the versions of PMIx plugins."""

    version: str | None = None
    """Version of Slurm, as ``sinfo --version`` prints it."""
    mpi_types: tuple[str, ...] | None = None
    """What ``srun --mpi=list`` prints: ``pmix``, ``pmi2``, ``none``."""
    mpi_default: str | None = None
    """What srun offers where no ``--mpi`` is given."""
    nodes: Count | None = None
    partitions: tuple[str, ...] | None = None
    settings: dict[str, str] = {}
    """The lines of ``scontrol show config`` that matter to containers and MPI."""


class HostMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI found on the host by its launcher, and its library, which can be bound into an image.

    What could not be seen is ``None``.
    """

    implementation: str
    version: str | None
    launcher: str
    lacks: tuple[str, ...] = ()
    """Libraries for want of which it did not start when it was asked for its version."""
    leaks: tuple[str, ...] | None = None
    """Variables that it sets for its children and that name its own installation."""
    pmix: str | None = None
    """Version of the PMIx server that it runs."""
    prefix: str | None = None
    """The folder that it is installed in."""
    library: str | None = None
    """The real path of its libmpi."""
    soname: str | None = None
    interfaces: tuple[str, ...] | None = None
    device: str | None = None
    """MPICH's device and its network modules: ``ch4:ofi,ucx``."""
    needs: tuple[str, ...] | None = None
    """Every library that is loaded with its own: sonames, the C library's left out."""
    components: dict[str, tuple[str, ...]] | None = None
    """Open MPI's that wire ranks up and carry messages: framework → names, built in or files."""
    components_need: dict[str, tuple[str, ...]] | None = None
    """What each component that is a file loads besides: ``pmix_ext3x`` → sonames."""
    places: dict[str, str] | None = None
    """The folder of each of these libraries that was found."""
    folders: tuple[str, ...] | None = None
    """All these folders, that of its own library first."""
    outside: tuple[str, ...] | None = None
    """Those of these libraries that are not below ``prefix``."""
    ucx: str | None = None
    """Version of the UCX that is loaded with it."""
    fabric: str | None = None
    """Newest version of its interface (``1.7`` of ``FABRIC_1.7``) that the libfabric loaded with it has."""
    glibc_needed: str | None = None
    """Newest version of the C library that it needs, or what would be mounted with it."""
    plugins: str | None = None
    """The folder with its components, where they are files."""
    relocatable: bool | None = None
    """It finds its files wherever its prefix is."""


class ContainerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """``setuid`` is ``None`` where the installation could not be examined; ``settings`` are its own."""

    name: str
    version: str
    """Its release; empty where what it says of it was not understood, and ``name`` is that of the program."""
    path: str
    setuid: bool | None = None
    """It is installed with setuid root; the kernel then mounts images, if release and settings let it."""
    settings: dict[str, str] = {}
    """Lines of apptainer.conf that say how containers start; a setting that is not there has its default."""
    unbound: tuple[str, ...] = ()
    """Lines ``bind path`` of its settings, ``SRC[:DST[:OPTS]]``, whose source this machine does not have."""
    seen: bool = True
    """It was found; else a module or a profile brings it, a release that is in use is taken to be there."""


class HostFacts(_Cited, frozen=True, kw_only=True):
    """One class of equal machines of a cluster, or one machine."""

    schema: str = "toolkit.host/1"
    place: str
    architecture: str | None = None
    """What ``uname -m`` prints."""
    kernel: str | None = None
    """What ``uname -r`` prints."""
    distribution: str | None = None
    glibc: str | None = None
    slurm: SlurmFacts | None = None
    """``None`` and ``absent`` where Slurm's commands are not there."""
    pmix: str | None = None
    """Version of the libpmix that Slurm's plugin (else any program) would load."""
    mpis: tuple[HostMpi, ...] | None = None
    """Launchers on PATH, the one that is found first at the front; empty where there is none."""
    folder_mpis: tuple[HostMpi, ...] | None = None
    """MPI libraries that no mpirun on PATH leads to: in the folders of Cray's, of modules' variables and of
    LD_LIBRARY_PATH; ``launcher`` is empty."""
    runtime: ContainerRuntime | None = None
    """The container runtime that is used: Apptainer or Singularity if one is on PATH, else another."""
    other_runtimes: tuple[ContainerRuntime, ...] = ()
    """Container runtimes that were found beside it."""
    user_namespaces: bool | None = None
    """A person can make user namespaces, which an unprivileged runtime needs."""
    squashfuse: str | None = None
    """Path of the program that mounts a SIF without privileges."""
    gpu_driver: str | None = None
    """NVIDIA driver version; ``absent`` where there is no GPU."""
    gpus: tuple[str, ...] | None = None
    """Names of the GPUs, one an entry, as nvidia-smi prints them."""
    mig: tuple[str, ...] | None = None
    """Parts that GPUs are divided into (MIG), one an entry, by profile: ``1g.5gb``; empty where none is."""
    gpu_mismatch: bool = False
    """nvidia-smi found the driver in the kernel to be of another release than its libraries."""
    amd_gpus: tuple[str, ...] | None = None
    """GPUs of AMD, one an entry: the architecture that programs are compiled for (``gfx90a``), or the numbers
    on the bus (``1002:7408``) where a job that was given none may not read it; empty where there is none."""
    gpu_libraries_glibc: str | None = None
    """Newest version of the C library that a driver library which ``--nv`` binds needs."""
    cpu_level: str | None = None
    """``x86-64-v1`` to ``x86-64-v4``: the newest level of which the processor has everything."""
    cpu_vendor: str | None = None
    """Who made the processor, as it says itself: ``GenuineIntel``, ``AuthenticAMD``."""
    cpu_threads: Count | None = None
    """Threads that each of its cores has; what the kernel has switched off counts, as it is still there."""
    shm: Count | None = None
    """Size of /dev/shm in bytes."""
    locked_memory: Limit | None = None
    """Bytes that a process may lock; -1 where there is no limit."""
    interfaces: tuple[str, ...] | None = None
    """Network interfaces, without the loopback."""
    interfaces_routed: tuple[str, ...] = ()
    """Those of them that are up and have a route to more than the machine itself; empty where nobody told."""
    libfabric: str | None = None
    """Path of the host's libfabric.so.1, which can be mounted into an image that has none."""
    infiniband: tuple[str, ...] | None = None
    """Devices of InfiniBand, Omni-Path or RoCE (/sys/class/infiniband) that have a port which is up; empty
    where there is none."""
    link_layers: dict[str, str] = {}
    """What a port of such a device says: ``InfiniBand``, or ``Ethernet``, over which it is RoCE; devices of
    which nobody told are not in it."""
    fabrics: tuple[str, ...] | None = None
    """Other fast networks that were seen: ``slingshot``, ``aries``, ``omni-path``, ``efa``."""
    ptrace_scope: Count | None = None
    """Yama's switch; 0 allows cross-memory attach between processes of one user."""
    xpmem: bool | None = None
    """The kernel module xpmem is there, by which a rank maps the memory of another."""
    mca_params: dict[str, str] | None = None
    """Settings of ``~/.openmpi/mca-params.conf`` and ``~/.pmix/mca-params.conf``, which a container obeys
    where the home folder is mounted; empty where there is no such file."""
    user_packages: tuple[str, ...] | None = None
    """Python versions (``3.11``) with a folder of packages below ``~/.local/lib``; empty where none has."""
    user_site: dict[str, tuple[str, ...]] = {}
    """Python version → packages there that change how ranks start or compute: ``mpi4py 4.1.2``."""
    munge: bool | None = None
    """A munge socket is there, by which PMIx's psec/munge proves who asks."""
    tmpdir: str | None = None
    """The folder that TMPDIR names, with the user's name replaced; ``absent`` where it is not set."""
    tmpdir_usable: bool | None = None
    """Whether that folder is there and can be written; ``absent`` where TMPDIR is not set."""
    compute_nodes: tuple[str, ...] | None = None
    """The equal compute nodes on which what concerns a rank was read; ``None`` where no compute node was
    asked or answered, and all facts are those of the machine that was asked first."""
    differs: dict[str, str] = {}
    """Facts that are not the same on all compute nodes that answered: dotted name → what it is where
    (``"node[1-2]: 2.36; node3: 2.28"``)."""
    environment: dict[str, str] = {}
    """Variables that a job inherits and that change how MPI starts in a container; no others.

    Of some the probe tells the name alone; then the value here is empty.
    """


class ImageMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library in an image and the launch interfaces that it can use (``pmix``, ``pmi1``, ``pmi2``).

    ``markers`` are strings in the library that tell how it behaves (``PMIX_RANK``);
    ``plugins`` says that its components are files of their own, which a host's path can hide.
    """

    implementation: str
    version: str | None
    """Release of the library; of Open MPI and MPICH that of the project."""
    library: str
    interfaces: tuple[str, ...] | None
    """Launch interfaces that it can use: ``pmix``, ``pmi1``, ``pmi2``."""
    launcher: str | None = None
    """Path of its mpirun, or ``None`` where there is none."""
    plugins: bool | None = None
    """Its components are files of their own, which a path of the host can hide."""
    markers: tuple[str, ...] = ()
    soname: str | None = None
    """What programs name to load it: ``libmpi.so.40``."""
    library_string: str | None = None
    """What ``MPI_Get_library_version`` returns, as far as it stands in the library as one text."""
    device: str | None = None
    """MPICH's device and its network modules, the one that it tries first in front: ``ch4:ucx,ofi``."""
    own_shm: bool | None = None
    """MPICH's ch4 has shared memory of its own; built for UCX alone it leaves ranks of one node to UCX
    (pmodels/mpich:src/mpid/ch4/subconfigure.m4)."""
    components: dict[str, tuple[str, ...]] = {}
    """Open MPI's components by framework (``{"btl": ("self", "tcp", "vader")}``), built in or as files."""
    how: dict[str, str] = {}
    """How it came by each interface: ``linked`` (its own code or a library that it is linked with), or
    ``component NAME`` where a plugin brings it."""
    prefix: str | None = None
    """The folder that it is installed in: ``/usr``, ``/opt/venv``."""
    built_for: str | None = None
    """The folder in which an Open MPI that was moved still looks for its plugins, where none is; the image
    names no other."""
    led_by: dict[str, str] = {}
    """The variable that leads it to them, and its value: ``{"OPAL_PREFIX": "/opt/hpcx/ompi"}``."""
    needs: tuple[str, ...] = ()
    """Every library that is loaded with it, as the image's loader resolves them: sonames, sorted."""
    lacks: tuple[str, ...] = ()
    """Those of them that the image's loader does not find."""
    pmix: str | None = None
    """Release of the PMIx client of an MPI that lies beside the first one, whose is a fact of the image."""
    fabric_asked: str | None = None
    """Newest version of libfabric's interface (``1.8`` of ``FABRIC_1.8``) that it needs; ``None`` where it
    needs none, or where its own DT_RPATH finds libfabric before LD_LIBRARY_PATH does."""


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
    """What was read from an image without starting it; ``stack`` is what it says of itself."""

    schema: str = "toolkit.image/1"
    path: str
    format: str
    """``sif``, ``oci-sif``, ``squashfs``, ``sandbox``, or how Docker and OCI keep it."""
    compression: str | None = None
    """Of the file system in a SIF: ``gzip``, ``zstd``, ``lz4``, ``xz``, ``lzo``; else ``absent``."""
    digest: str | None = None
    architecture: str | None = None
    """Processor architecture of its programs."""
    distribution: str | None = None
    glibc: str | None = None
    """Version of its C library; ``absent`` where it has another one."""
    glibc_needed: str | None = None
    """Newest GLIBC_ version that a program or library which was looked at needs."""
    cpu_level: str | None = None
    """Newest level of x86-64 that a library says it needs: ``x86-64-v3``."""
    mpi: ImageMpi | None = None
    """The library that a program in the image really loads."""
    other_mpis: tuple[ImageMpi, ...] = ()
    mpirun: str | None = None
    """Real path of the mpirun that PATH finds first; it may belong to another MPI than ``mpi``."""
    pmix: str | None = None
    """Version of the PMIx client, a library of its own or built into the MPI."""
    pmix_components: dict[str, tuple[str, ...]] = {}
    """Components of the PMIx client by framework: ``psec``, ``gds``, ``ptl``; built in or as files."""
    pmix_plugins: bool | None = None
    """Components that the PMIx client cannot do without are files, which a path of the host can hide."""
    ucx: str | None = None
    """Version of UCX, which carries the messages of some MPIs."""
    ucx_transports: tuple[str, ...] | None = None
    """Modules of the UCX in the image: ``tcp`` is always there, ``ib``, ``cma``, ``cuda`` not."""
    libfabric: str | None = None
    """Path of libfabric, which some MPIs open only when they need it."""
    libfabric_version: str | None = None
    """Release of this libfabric."""
    libfabric_providers: tuple[str, ...] | None = None
    """Networks that this libfabric speaks, or the one that MPICH has in its own library: ``tcp``, ``verbs``,
    ``psm2``, ``cxi``."""
    verbs_providers: tuple[str, ...] | None = None
    """User-space drivers of libibverbs: ``mlx5``, ``hfi1verbs``; empty where there is none."""
    hwloc: str | None = None
    programs: dict[str, str] = {}
    """Path of a program or extension that loads an MPI → the library that it would really load; empty text
    where the image's loader finds none."""
    program: ImageProgram | None = None
    """The program of the command that was asked for; ``None`` and ``absent`` if none was."""
    hidden: dict[str, str] = {}
    """Programs and MPI libraries of the image that a mount of the runtime hides → the folder of the mount."""
    refused: dict[str, str] = {}
    """Programs that the loader refuses to start, as a symbol or version is missing → what it prints."""
    programs_otherwise: dict[str, str] = {}
    """The same where LD_LIBRARY_PATH names no folder of the image, of those programs for which it differs."""
    libraries: tuple[str, ...] | None = None
    """Every soname that a program finds without folders of its own: by LD_LIBRARY_PATH, ldconfig's list and
    the system's folders; sorted."""
    ssh: str | None = None
    """Path of the program that a launcher inside would start remote ranks with: ssh, or what the settings of
    the image's Open MPI name in its place; empty where they say that none is needed on one node."""
    python: str | None = None
    """Version of Python."""
    tensorflow: str | None = None
    """Version of TensorFlow."""
    tensorflow_cuda: str | None = None
    """CUDA that TensorFlow was built for; ``absent`` where it was built without."""
    tensorflow_cudnn: str | None = None
    """cuDNN that TensorFlow was built for."""
    pytorch: str | None = None
    """Version of PyTorch."""
    pytorch_cuda: str | None = None
    """CUDA that PyTorch was built for; ``absent`` where it was built without."""
    jax: str | None = None
    """Version of JAX."""
    cuda: str | None = None
    """Version of the CUDA runtime library in the image."""
    cudnn: str | None = None
    """Version of the cuDNN library."""
    nccl: str | None = None
    """Version of the NCCL library."""
    nccl_ofi: str | None = None
    """Path of the plugin by which NCCL sends through libfabric (aws-ofi-nccl)."""
    cuda_compat: str | None = None
    """Driver version of the forward-compatibility package (``cuda-compat``) in the image."""
    cuda_compat_folders: tuple[str, ...] = ()
    """Every name of the folder that its libcuda lies in: ``/usr/local/cuda/compat``."""
    horovod: str | None = None
    """Version of Horovod."""
    horovod_built: tuple[str, ...] | None = None
    """What Horovod's native libraries were built with: ``mpi``, ``gloo``, ``nccl``, ``cuda``."""
    horovod_frameworks: tuple[str, ...] | None = None
    """``tensorflow``, ``torch``, ``mxnet``: those that Horovod has a native library for."""
    horovod_tensorflow: str | None = None
    """The TensorFlow that Horovod's library was built against, where the library tells."""
    mpi4py: str | None = None
    labels: dict[str, str] = {}
    environment: dict[str, str] = {}
    """What the image sets for its programs, as far as it concerns MPI and search paths."""
    settings: dict[str, str] = {}
    """Settings in files that Open MPI, PMIx and PRRTE of the image read, by the variable of the same effect:
    ``{"OMPI_MCA_btl_tcp_if_include": "ib0"}``."""
    entrypoint: tuple[str, ...] | None = None
    """What ``run`` starts, entry point and command together; ``exec`` skips it."""
    entry_script: str = ""
    """The shell script of the entry point, if it sets variables and then starts its arguments."""
    entry_sets: dict[str, str] = {}
    """The variables that ``entry_script`` sets, as far as they concern MPI and search paths."""
    stack: dict[str, object] | None = None
    """``/opt/toolkit/stack.json`` as it stands, or ``None`` where the image does not describe itself."""
    disagreements: tuple[str, ...] = ()
    """Lines on which ``stack`` and what is really inside differ."""
