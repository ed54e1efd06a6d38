"""Where the ranks of a program without MPI meet, as far as user, command and script decide it; pure."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.engine.case import Case
from toolkit.engine.proposal import RANKS_FILE
from toolkit.launcher import srun
from toolkit.program.script.rendezvous import MADE

_LOCAL = {"localhost", "localhost.localdomain", "0.0.0.0", "::1"}  # noqa: S104 - nothing is bound
JAX_BY_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
"""What JAX reads of a step of Slurm (jax-ml/jax:jax/_src/clusters/slurm_cluster.py, is_env_present)."""


@dataclass(frozen=True, slots=True)
class Given:
    """A variable or an argument, its value, and the line that shows who gives it."""

    name: str
    value: str
    evidence: str

    @property
    def number(self) -> int | None:
        """The value, if it is a number."""
        return int(self.value) if self.value.lstrip("-").isdecimal() else None


def told(case: Case, *names: str) -> Given | None:
    """Return what user, command or script give for the first of some names; ``None`` if none of them does.

    What the job script itself gives a rank is not told so.
    """
    for name in names:
        said = case.request.says.get(name)
        if said is not None and said != MADE:
            return Given(name, said, f"command: {name}={said}")
        if name in case.plan.env:
            value = case.plan.env[name]
            return Given(name, value, f"plan: {name}={value}")
    return None


def is_told_peers(case: Case) -> bool:
    """Return whether the job script gives each rank its place and its peers."""
    return RANKS_FILE in case.plan.wrapper


def starts_by_torchrun(case: Case) -> bool:
    """Return whether torchrun starts the ranks of each node."""
    return case.plan.program == "torch" and (
        case.plan.starter == "torchrun"
        or posixpath.basename((case.request.command or ("",))[0]) == "torchrun"
    )


def is_explicit(case: Case) -> bool:
    """Return whether a JAX program passes count and number of its processes itself."""
    return {"num_processes", "process_id"} <= set(case.request.says)


def by_srun(case: Case) -> bool:
    """Return whether srun starts the ranks."""
    return not case.plan.inside and posixpath.basename(case.plan.launcher[0]) == srun.COMMAND


def address(case: Case) -> Given | None:
    """Return the address at which the ranks meet, unless the job script looks it up."""
    if case.plan.program == "jax":
        return _host(told(case, "coordinator_address", "JAX_COORDINATOR_ADDRESS"))
    if case.plan.program != "torch":
        return None
    if starts_by_torchrun(case):
        return None if told(case, "PET_STANDALONE") else _host(told(case, "PET_RDZV_ENDPOINT"))
    method = told(case, "init_method")
    if method and method.value.startswith("tcp://"):
        return _host(Given(method.name, method.value.removeprefix("tcp://"), method.evidence))
    return told(case, "MASTER_ADDR") if method is None or method.value == "env://" else None


def _host(found: Given | None) -> Given | None:
    """Return ``HOST:PORT`` without its port."""
    if found is None or not found.value:  # JAX takes an empty address for none
        return None
    host, separator, _ = found.value.rpartition(":")
    return Given(found.name, (host if separator else found.value).strip("[]"), found.evidence)


def is_local(host: str) -> bool:
    """Return whether an address is the address of every machine."""
    return host in _LOCAL or host.startswith("127.")


def nodes_of(found: Given | None, usual: int) -> tuple[int, int] | None:
    """Return the least and the most nodes of ``--nnodes``; ``None`` if the value is not of that form."""
    least, _, most = (found.value if found else str(usual)).partition(":")
    if not least.isdecimal() or not (most or least).isdecimal():
        return None
    return int(least), int(most or least)


def interfaces(case: Case) -> Iterator[Given]:
    """Yield the network interfaces that the user or the script names for Gloo, one by one."""
    named = case.request.says.get("GLOO_SOCKET_IFNAME") or case.request.env.get("GLOO_SOCKET_IFNAME", "")
    for name in filter(None, named.split(",")):
        yield Given("GLOO_SOCKET_IFNAME", name, f"GLOO_SOCKET_IFNAME={named}")
