"""Facts about a cluster: its partitions, accounts, modules and folders. ``None`` means unknown."""

import msgspec

from toolkit.model.facts import Count


class PartitionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A partition, as sinfo reports it. If the nodes differ, ``cpus``, ``memory_mb``, ``gpus``, ``cores`` and
    ``threads`` are each the largest value of any node.

    ``max_time`` has Slurm's syntax or is ``UNLIMITED``. ``max_nodes`` is the maximum number of nodes of a
    job; it is ``None`` if the partition has no such limit or the limit is unknown. ``cores`` is the number of
    physical cores of a node. ``threads`` is the number of hardware threads of a core. ``gpu`` is the GPU type
    in GRES (Slurm's generic resources); it is empty if there are several types. ``gpus`` is 0 if GRES has no
    GPUs.
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
    """A Slurm account that the user may charge, with each QOS that the user may request."""

    account: str
    qos: tuple[str, ...] = ()
    default: bool = False


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder whose path is the value of a login shell's variable, such as SCRATCH.

    ``mount`` is the mount point of the folder's file system. ``kind`` is the type of the folder's file
    system, from ``stat -f``.
    """

    variable: str
    path: str
    mount: str = ""
    kind: str = ""


class SiteFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the cluster as a whole, which ``toolkit init`` and ``toolkit site check`` use.

    ``cluster`` is Slurm's ClusterName. ``enforces`` are the values of Slurm's AccountingStorageEnforce.
    ``modules`` is the module system (``lmod 8.7``); it is empty if the cluster has no module system.
    ``offers`` lists modules that provide a container runtime; modules with a mark, such as ``(default)``,
    come first.

    Four fields say whether the names in a site profile exist on the cluster. Their entries are in the order
    of the profile. For each module, ``loaded`` contains the error message of the module system, or an empty
    text if the module loaded. For each program, ``commands`` contains the path at which a login shell with
    the profile's modules finds the program, or an empty text if the shell does not find it. The first two
    entries of ``commands`` are always for ``apptainer`` and ``singularity``; the profile's programs follow.
    For each folder in the profile, ``there`` says whether the folder exists on the login node, and
    ``there_nodes`` says whether the folder exists on a compute node.

    ``folders`` lists the folders whose paths are the values of common variables, such as SCRATCH.

    ``scratch`` and ``up`` describe one compute node. ``scratch`` lists writable folders on a local disk of
    the node. ``up`` lists the node's network interfaces that have a route and are not down. If there is no
    such interface, ``up`` lists all interfaces that are not down. If no compute node answered, ``up`` lists
    interfaces of the login node.
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
