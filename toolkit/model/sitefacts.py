"""Facts about a cluster as a whole; no conclusions. ``None`` means unknown."""

import msgspec

from toolkit.model.facts import Count


class PartitionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One partition from sinfo; for unequal nodes the largest value of any node.

    ``max_time`` is in Slurm's form or ``UNLIMITED``, ``max_nodes`` is ``None`` if a job may have all;
    ``cores`` are physical ones, ``threads`` hardware threads a core, ``gpu`` the type of GRES. ``gpus`` is 0
    if GRES has none.
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
    """An account that the user may charge, with its QOS."""

    account: str
    qos: tuple[str, ...] = ()
    default: bool = False


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that a variable of a login shell names; ``mount`` is where its disk is mounted.

    ``kind`` is the type of its file system, from ``stat -f``.
    """

    variable: str
    path: str
    mount: str = ""
    kind: str = ""


class SiteFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What ``toolkit init`` and ``toolkit site check`` read in addition to the facts of machines.

    ``cluster`` is Slurm's ClusterName, ``enforces`` what AccountingStorageEnforce names. ``modules`` is the
    module system (``lmod 8.7``), empty without one; ``offers`` are modules with a container runtime, the
    default module first.

    The words of a profile have answers in their order: ``loaded`` holds the message of a module that did not
    load, ``""`` for one that did; ``commands`` the paths of programs in a login shell that has loaded these
    modules, of ``apptainer`` and ``singularity`` first, ``""`` for none; ``there`` whether a folder exists on
    the login host, ``there_nodes`` on a compute node.

    ``folders`` are named by usual variables, ``scratch`` are writable folders on a disk of the compute node,
    ``up`` its network interfaces that are not down.
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
