"""What a person may say of a job, in a file, in settings, in variables or by options; all of it optional."""

from typing import Literal

import msgspec

from toolkit.model.prediction import Mode

Strategy = Literal["single", "horovod", "mirrored", "multiworker", "mpi-aggregate", "hybrid", "ps"]
"""How a trainer is distributed."""


class JobFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job specification as it is written; ``None`` where nothing is said.

    ``trainer`` and its ``arguments``, or a ``command`` of one's own. ``image`` is a SIF file or the name of
    a recipe, ``runtime`` the container runtime that starts it, ``data`` a folder on this machine,
    ``directory`` the folder on the cluster that holds images, data and runs, ``site`` the name of a site
    profile. All other fields are those of
    :class:`toolkit.model.job.JobSpec`. ``env_file`` is a file of this machine with secret variables; once it
    is read they are in ``env`` too, as :class:`toolkit.model.hidden.Hidden`.
    """

    trainer: str | None = None
    arguments: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    image: str | None = None
    runtime: str | None = None
    site: str | None = None
    mode: Mode | None = None
    strategy: Strategy | None = None
    data: str | None = None
    directory: str | None = None
    name: str | None = None
    nodes: int | None = None
    ranks_per_node: int | None = None
    cpus_per_rank: int | None = None
    gpus_per_node: int | None = None
    gpu: str | None = None
    gpu_bind: str | None = None
    cpu_bind: str | None = None
    memory: str | None = None
    memory_per_cpu: str | None = None
    time: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    nodelist: str | None = None
    exclude: str | None = None
    licenses: str | None = None
    mail_type: str | None = None
    mail_user: str | None = None
    array: str | None = None
    dependency: str | None = None
    begin: str | None = None
    exclusive: bool | None = None
    requeue: bool | None = None
    warning: int | None = None
    chain: int | None = None
    elastic: bool | None = None
    min_nodes: int | None = None
    output: str | None = None
    error: str | None = None
    workdir: str | None = None
    modules: tuple[str, ...] | None = None
    sbatch: tuple[str, ...] | None = None
    env: dict[str, str] | None = None
    env_file: str | None = None
    binds: tuple[str, ...] | None = None
    preflight: bool | None = None
    user_site: bool | None = None
    fabric_gbit: int | None = None
    min_free: str | None = None

    def said(self) -> dict[str, object]:
        """Return the fields that are given, in the order of the struct."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not None}
