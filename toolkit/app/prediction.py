"""Images, machines, and predictions: the functions of the API that launch nothing."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.app.arguments import StrPath, path_text
from toolkit.errors import BadInput
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Verdict
from toolkit.model.progress import Silent, Tell

if TYPE_CHECKING:
    from toolkit.job.places import Where


def inspect(image: StrPath, *, platform: str = "", tell: Tell | None = None) -> ImageFacts:
    """Return the facts of an image; the image is not started.

    Args:
        image: a SIF, a squashfs, a sandbox folder, a Docker or OCI archive, or any name that
            ``toolkit image inspect`` takes.
        platform: which image to read from an archive for several, such as ``linux/arm64``.
        tell: receives progress.

    Raises:
        BadInput: if there is no such image, or it has another format.
        Damaged: if the image is cut short or has a wrong checksum.
    """
    from toolkit.image.inspect import inspect as read

    return read(os.fspath(image), platform=platform, tell=tell)


def probe(
    *,
    host: str | None = None,
    cluster: str | None = None,
    ssh_config: StrPath | None = None,
    partition: str | None = None,
    nodes: int | str = 1,
    wait: int = 5,
) -> HostFacts:
    """Return the facts of a machine and of its compute nodes; nothing is changed on them.

    Args:
        host: a machine over SSH, as ``HOST``, ``USER@HOST`` or an alias; this machine by default.
        cluster: a virtual cluster of this machine, instead of ``host``.
        ssh_config: the SSH configuration to use, as in ``ssh -F``.
        partition: the Slurm partition of the compute nodes; Slurm's default if not given.
        nodes: how many compute nodes to ask, ``"all"``, or names such as ``"node[1-4]"``; 0 for none.
        wait: seconds until the compute nodes must be free, at most 600.

    Raises:
        BadInput: for arguments that contradict each other.
        CheckFailed: if the answer is cut short.
        Missing: if the machine is unreachable.
    """
    from toolkit.job.facts import gather_facts
    from toolkit.probe.asking import NodeChoice

    return gather_facts(_where(host, cluster, ssh_config), NodeChoice(str(nodes), wait, partition or "")).host


def load_facts(file: StrPath) -> HostFacts:
    """Return the facts in a file that ``toolkit probe -o`` or the probe script wrote.

    Raises:
        BadInput: if the file is not a facts file.
    """
    from toolkit.probe.bundle import load

    return load(Path(file))


def doctor(
    image: StrPath | ImageFacts,
    place: HostFacts | StrPath | None = None,
    *,
    nodes: int | None = None,
    ranks_per_node: int | None = None,
    mode: Mode | None = None,
    site: str | None = None,
    job: StrPath | None = None,
    host: str | None = None,
    cluster: str | None = None,
    ssh_config: StrPath | None = None,
    partition: str | None = None,
    command: Sequence[str] = (),
    tell: Tell | None = None,
) -> Verdict:
    """Predict what each launch mode will do with an image, as ``toolkit doctor`` does.

    Args:
        image: an image as :func:`inspect` takes it, or its facts.
        place: the facts of the cluster, or a facts file. Without them, the machine that ``host`` or
            ``cluster`` names is probed; this machine by default.
        nodes: number of nodes; 2 if neither this nor the job file says so.
        ranks_per_node: ranks on each node; 1 if neither this nor the job file says so.
        mode: judge the launch in this mode only.
        site: the name or the file of a site profile.
        job: a job file in YAML; the other arguments win over it.
        host, cluster, ssh_config: as in :func:`probe`.
        partition: the Slurm partition of the job; one of its nodes is probed.
        command: the command of a rank; the verdict is then about the MPI that its program loads.
        tell: receives progress.

    Returns:
        The verdict. ``verdict.chosen`` is the launch mode to use, ``None`` if no mode is predicted to work.

    Raises:
        BadInput: for a wrong argument or file.
        CheckFailed: if the image is damaged, or the answer of the probe is cut short.
        Missing: if the machine is unreachable.
    """
    from toolkit.job.diagnosis import LaunchQuestion, diagnose, request_launch

    where = _where(host, cluster, ssh_config)
    if place is not None and (where.remote or ssh_config is not None or partition is not None):
        raise BadInput(
            "place: this argument contains the facts of the host; leave out host, cluster, "
            "ssh_config and partition"
        )
    tell = tell or Silent()
    given = image if isinstance(image, ImageFacts) else os.fspath(image)
    question = LaunchQuestion(
        image=given.path if isinstance(given, ImageFacts) else given,
        site=site,
        job_file=path_text(job),
        partition=partition,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        mode=mode,
        command=tuple(command),
    )
    asked = request_launch(question, tell)
    facts = place if isinstance(place, HostFacts) or place is None else Path(place)
    return diagnose(given, facts, asked, where, partition, tell).verdict


def _where(host: str | None, cluster: str | None, ssh_config: StrPath | None) -> "Where":
    from toolkit.job.places import Where

    return Where(host, cluster, None if ssh_config is None else Path(ssh_config))
