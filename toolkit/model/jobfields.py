"""The options of a launch as keyword arguments of :mod:`toolkit.app`."""

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

from toolkit.model.jobfile import Strategy
from toolkit.model.prediction import Mode


class JobFields(TypedDict, total=False):
    """The fields of :class:`toolkit.model.jobfile.JobFile` without the program; none is required."""

    image: str | os.PathLike[str]
    runtime: str
    site: str
    mode: Mode
    strategy: Strategy
    data: str | os.PathLike[str]
    directory: str
    name: str
    nodes: int
    ranks_per_node: int
    cpus_per_rank: int
    gpus_per_node: int
    gpu: str
    gpu_bind: str
    cpu_bind: str
    memory: str
    memory_per_cpu: str
    time: str
    partition: str
    account: str
    qos: str
    constraint: str
    reservation: str
    nodelist: str
    exclude: str
    licenses: str
    mail_type: str
    mail_user: str
    array: str
    dependency: str
    begin: str
    exclusive: bool
    user_site: bool
    requeue: bool
    warning: int
    chain: int
    elastic: bool
    min_nodes: int
    output: str
    error: str
    workdir: str
    modules: Sequence[str]
    sbatch: Sequence[str]
    env: Mapping[str, str]
    env_file: str | os.PathLike[str]
    binds: Sequence[str]
    preflight: bool
    fabric_gbit: int
    min_free: str


class LaunchOptions(JobFields, total=False):
    """The options of ``toolkit.app.launch`` and ``toolkit.app.script``; none is required.

    ``arguments`` are words for the trainer. ``host`` is a machine over SSH, ``cluster`` a virtual cluster;
    without them the job runs on this machine, or on the host of the site profile. ``job`` is a job file in
    YAML. ``from_job`` is the key of a job to repeat with the same image and launch mode. ``local`` runs the
    job on this machine without Slurm, until it ends. ``fix`` is a file that ``toolkit doctor --fix`` wrote.
    ``force`` launches although a failure is predicted. ``verify_key`` is a file of public keys: an image
    that none of them has signed is refused. ``no_verify`` skips the check of the signatures.
    ``explain`` adds comments to the script that say where each value comes from. ``copies`` runs a program
    that joins no ranks once for each of them. ``project`` is the folder that goes to another machine, by
    default the folder of the script; with ``sync=False`` none does.
    """

    arguments: Sequence[str]
    host: str | None
    cluster: str | None
    ssh_config: str | os.PathLike[str] | None
    job: str | os.PathLike[str] | None
    from_job: str | None
    local: bool
    fix: str | os.PathLike[str] | None
    force: bool
    verify_key: str | os.PathLike[str] | None
    no_verify: bool
    explain: bool
    copies: bool
    sync: bool
    project: str | os.PathLike[str] | None
