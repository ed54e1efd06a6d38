"""Build the single command that probes a machine and its compute nodes."""

import re
import shlex
from dataclasses import dataclass

from toolkit import nodelist
from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.run.command import Command

_SECONDS = 60
"""Time limit of the probe in seconds, without the wait in Slurm's queue: 40 s for all queries of the script,
and 20 s for the connection.
"""
_WHERE = "@probe@\n"
_NAME = re.compile(r"[A-Za-z0-9_.,+@=-]*", re.ASCII)
"""A pattern for partition names. The pattern must accept each partition name that toolkit accepts for a job.
"""


@dataclass(frozen=True, slots=True)
class SiteWords:
    """Names from a site profile (the file that describes a cluster). The probe checks whether these names
    exist on the cluster.

    ``modules`` are in the order in which a job loads them. ``commands`` are programs. A folder in ``folders``
    may start with a variable (``$WORK/data``). :mod:`toolkit.knowledge.sitefields` checks these names.
    """

    modules: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """The compute nodes to probe, in addition to the contacted machine.

    ``nodes`` is a number of nodes, ``all``, or node names in Slurm's notation. ``wait`` is the maximum time,
    in seconds, that the probe waits in Slurm's queue. An empty ``partition`` means the default partition. If
    ``site`` is given, the probe also runs the queries for a site profile, one of which asks for the Slurm
    accounts that the user may charge. If ``accounts`` is true, the probe asks for these accounts even
    if ``site`` is ``None``.
    """

    nodes: str = "1"
    wait: int = 5
    partition: str = ""
    site: SiteWords | None = None
    accounts: bool = False

    def __post_init__(self) -> None:
        if what := _wrong(self.nodes):
            raise BadInput(f"--nodes {self.nodes!r}: {what}")
        if not _NAME.fullmatch(self.partition) or self.partition.startswith("-"):
            raise BadInput(
                f"--partition {self.partition!r}: use letters, digits and _.,+@=- (no dash at the start)"
            )

    @property
    def is_empty(self) -> bool:
        """True if the probe runs only on the contacted machine, and on no compute node."""
        return self.nodes.isdecimal() and int(self.nodes) == 0

    @property
    def seconds(self) -> int:
        """The time limit, in seconds, of the whole probe, including its wait in Slurm's queue."""
        return _SECONDS + self.wait


def _wrong(nodes: str) -> str:
    """Return a message that says what is wrong with a value of ``--nodes``; empty for a valid value."""
    if nodes.isascii() and nodes.isdecimal():
        most = len(str(nodelist.MOST_NODES))
        return (
            ""
            if len(nodes) <= most and int(nodes) <= nodelist.MOST_NODES
            else f"give at most {nodelist.MOST_NODES} nodes"
        )
    why = "" if nodes == "all" else nodelist.wrong(nodes)
    return "give a number of nodes, `all`, or names such as node[1-4]" if why == nodelist.RULE else why


def of_job(partition: str | None, *, accounts: bool = False) -> NodeChoice:
    """Return a :class:`NodeChoice` of one compute node in a job's partition. If ``partition`` lists several
    partitions with commas, the node is in the first partition.
    """
    return NodeChoice(partition=(partition or "").partition(",")[0], accounts=accounts)


def command(choice: NodeChoice) -> Command:
    """Return the command that probes the contacted machine and the compute nodes in ``choice``."""
    folder = shipped_folder("containers")
    script = (folder / "probe.sh").read_bytes()
    preamble = (folder / "login-path.sh").read_bytes() + variables_of_site(choice.site)
    preamble += b"export TOOLKIT_ACCOUNTS=yes\n" if choice.accounts else b""
    if choice.is_empty:
        return Command.of("sh", "-s", stdin=preamble + script, timeout=choice.seconds)
    before, _, after = (folder / "nodes.sh").read_bytes().partition(f"\n{_WHERE}".encode())
    words = ["sh", "-s", choice.nodes.lstrip("0") or choice.nodes, str(choice.wait)]
    if choice.partition:
        words.append(choice.partition)
    return Command.of(*words, stdin=preamble + before + b"\n" + script + after, timeout=choice.seconds)


def variables_of_site(site: SiteWords | None) -> bytes:
    """Return shell commands that set the variables for a site profile's queries; empty if ``site`` is
    ``None``.
    """
    if site is None:
        return b""
    modules = tuple(module.replace(" ", ",") for module in site.modules)
    words = {"MODULES": modules, "COMMANDS": site.commands, "FOLDERS": site.folders}
    settings = ["TOOLKIT_SITE=yes", *(f"TOOLKIT_{k}={shlex.quote(' '.join(v))}" for k, v in words.items())]
    return "".join(f"export {setting}\n" for setting in settings).encode()
