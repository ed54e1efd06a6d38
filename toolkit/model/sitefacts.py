"""Facts about a complete cluster, without conclusions. ``None`` means unknown."""

import msgspec

from toolkit.model.facts import Count


class PartitionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A partition, as sinfo reports it. If nodes differ, a field has the largest value of any node.

    ``max_time`` has Slurm's syntax or is ``UNLIMITED``. ``max_nodes`` is ``None`` if a job may use all nodes.
    ``cores`` is the number of physical cores of a node. ``threads`` is the number of hardware threads of a
    core. ``gpu`` is the GPU type in GRES (Slurm's generic resources). ``gpus`` is 0 if GRES has no GPUs.
    """

    name: str
    default: bool = False
    up: bool = True
    nodes: Count = 0
    cpus: Count | None = None
    memory_mb: Count | None = None
    gpus: Count | None = None
    gpu: str = ""
    max_time: str = ""
    max_nodes: Count | None = None
    cores: Count | None = None
    threads: Count | None = None
    features: tuple[str, ...] | None = None


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """A Slurm account that the user may charge, with its QOS."""

    account: str
    qos: tuple[str, ...] = ()
    default: bool = False


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that a variable of a login shell names.

    ``mount`` is the mount point of the folder's file system. ``kind`` is the type of the folder's file
    system, from ``stat -f``.
    """

    variable: str
    path: str
    mount: str = ""
    kind: str = ""


class SiteFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that ``toolkit init`` and ``toolkit site check`` read in addition to the facts about machines.

    ``cluster`` is Slurm's ClusterName. ``enforces`` are the values of Slurm's AccountingStorageEnforce.
    ``modules`` is the module system (``lmod 8.7``); it is empty if the cluster has no module system.
    ``offers`` lists modules with a container runtime, the default module first.

    The fields ``loaded``, ``commands``, ``there`` and ``there_nodes`` have one value for each module, program
    or folder of a site profile, in the profile's order. ``loaded`` contains the error message of each module,
    or ``""`` for a module that loaded. ``commands`` contains the path at which a login shell with the
    profile's modules finds each program, or ``""`` for a missing program. The first two programs are
    ``apptainer`` and ``singularity``. ``there`` says whether each folder exists on the login host, and
    ``there_nodes`` whether each folder exists on a compute node.

    ``folders`` lists the folders that common variables, such as SCRATCH, contain. ``scratch`` lists writable
    folders on a local disk of the compute node. ``up`` lists the compute node's network interfaces that are
    up and have a route. If no interface has a route, ``up`` lists all interfaces that are not down.
    """

    cluster: str = ""
    enforces: tuple[str, ...] = ()
    partitions: tuple[PartitionFacts, ...] | None = None
    associations: tuple[Association, ...] | None = None
    modules: str | None = None
    offers: tuple[str, ...] | None = None
    loaded: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None
    folders: tuple[Folder, ...] | None = None
    there: tuple[bool, ...] | None = None
    there_nodes: tuple[bool, ...] | None = None
    scratch: tuple[str, ...] | None = None
    up: tuple[str, ...] | None = None
