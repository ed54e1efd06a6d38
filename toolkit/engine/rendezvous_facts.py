"""Find out how the ranks of a program without MPI find each other. The sources are toolkit's options,
the command and the user's script.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.engine.case import Case
from toolkit.engine.planning.proposal import RANKS_FILE
from toolkit.launcher import srun
from toolkit.program.choose import starter_of
from toolkit.program.script.rendezvous import COMPUTED_VALUE

_LOCAL = {"localhost", "localhost.localdomain", "0.0.0.0", "::1"}  # noqa: S104 - toolkit opens no socket
JAX_BY_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
"""Variables that Slurm sets in a job step. JAX reads the number of ranks, each rank's number and the
coordinator's address from these variables (jax-ml/jax:jax/_src/clusters/slurm_cluster.py).
"""


@dataclass(frozen=True, slots=True)
class RankSetting:
    """A variable or an argument: its name, its value, and a line that says where the value is set."""

    name: str
    value: str
    evidence: str

    @property
    def number(self) -> int | None:
        """The setting's value as an integer; ``None`` if the value is not an integer."""
        return int(self.value) if self.value.lstrip("-").isdecimal() else None


def find_setting(case: Case, *names: str) -> RankSetting | None:
    """Return the first setting in ``names`` that the user, the command or the script sets. Return ``None`` if
    they set no setting in ``names``.

    The function ignores values that the script computes at run time or that toolkit's job script sets for
    each rank.
    """
    for name in names:
        said = case.request.says.get(name)
        if said is not None and said != COMPUTED_VALUE:
            return RankSetting(name, said, f"command: {name}={said}")
        if name in case.plan.env:
            value = case.plan.env[name]
            return RankSetting(name, value, f"plan: {name}={value}")
    return None


def sets_peers(case: Case) -> bool:
    """Return whether the job script passes each rank its rank number and the addresses of its peers."""
    return RANKS_FILE in case.plan.wrapper


def starts_by_torchrun(case: Case) -> bool:
    """Return whether torchrun starts the ranks of each node."""
    return case.plan.program == "torch" and "torchrun" in {
        case.plan.starter,
        starter_of("torch", case.request),
        posixpath.basename((case.request.command or ("",))[0]),
    }


def passes_process_count(case: Case) -> bool:
    """Return whether a JAX program itself passes ``num_processes`` and ``process_id`` to
    ``jax.distributed.initialize``.
    """
    return {"num_processes", "process_id"} <= set(case.request.says)


def starts_by_srun(case: Case) -> bool:
    """Return whether srun starts the ranks."""
    return not case.plan.inside and posixpath.basename(case.plan.launcher[0]) == srun.COMMAND


def rendezvous_address(case: Case) -> RankSetting | None:
    """Return the address at which the ranks of a JAX or PyTorch program find each other. Return ``None`` if
    the user, the command and the script set no address, or if the program uses neither JAX nor PyTorch.
    """
    if case.plan.program == "jax":
        return _host(find_setting(case, "coordinator_address", "JAX_COORDINATOR_ADDRESS"))
    if case.plan.program != "torch":
        return None
    if starts_by_torchrun(case):
        return (
            None if find_setting(case, "PET_STANDALONE") else _host(find_setting(case, "PET_RDZV_ENDPOINT"))
        )
    method = find_setting(case, "init_method")
    if method and method.value.startswith("tcp://"):
        return _host(RankSetting(method.name, method.value.removeprefix("tcp://"), method.evidence))
    return find_setting(case, "MASTER_ADDR") if method is None or method.value == "env://" else None


def _host(setting: RankSetting | None) -> RankSetting | None:
    """Return the setting with its value ``HOST:PORT`` shortened to ``HOST``; ``None`` for an empty value."""
    if setting is None or not setting.value:  # JAX treats an empty address as unset
        return None
    host, separator, _ = setting.value.rpartition(":")
    return RankSetting(setting.name, (host if separator else setting.value).strip("[]"), setting.evidence)


def is_local(host: str) -> bool:
    """Return whether an address means the local machine."""
    return host in _LOCAL or host.startswith("127.")


def node_range(setting: RankSetting | None, default: int) -> tuple[int, int] | None:
    """Return the smallest and the largest number of nodes that torchrun's option ``--nnodes`` allows.
    ``setting`` is this option; if it is ``None``, both numbers are ``default``. Return ``None`` if toolkit
    cannot parse the option's value.
    """
    least, _, most = (setting.value if setting else str(default)).partition(":")
    if not least.isdecimal() or not (most or least).isdecimal():
        return None
    return int(least), int(most or least)


def gloo_interfaces(case: Case) -> Iterator[RankSetting]:
    """Yield the network interfaces that the user or the script sets for Gloo."""
    named = case.request.says.get("GLOO_SOCKET_IFNAME") or case.request.env.get("GLOO_SOCKET_IFNAME", "")
    for name in filter(None, named.split(",")):
        yield RankSetting("GLOO_SOCKET_IFNAME", name, f"GLOO_SOCKET_IFNAME={named}")
