"""Functions of the API that read images, probe machines and predict launches. No function of this module
submits a job.
"""

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
    from toolkit.job.places import HostOptions


def inspect(image: StrPath, *, platform: str = "", tell: Tell | None = None) -> ImageFacts:
    """Return the facts of an image, such as its MPI library, without starting a container.

    Args:
        image: a SIF, a squashfs, a sandbox folder, a Docker or OCI archive, or any other image name that
            ``toolkit image inspect`` accepts.
        platform: for an archive with images for several platforms, the platform of the image to read, for
            example ``linux/arm64``.
        tell: receives progress messages.

    Raises:
        BadInput: if the image does not exist, or has an unknown format.
        Damaged: if the image is truncated or has a wrong checksum.
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
    """Return the facts of a machine and of its compute nodes. The probe changes nothing on the machine.

    Args:
        host: a machine to contact over SSH, as ``HOST``, ``USER@HOST`` or an alias from the SSH
            configuration; by default this machine.
        cluster: the name of a virtual cluster on this machine (see ``toolkit cluster``). Do not give both
            ``host`` and ``cluster``.
        ssh_config: the SSH configuration file, as for ``ssh -F``.
        partition: the Slurm partition of the compute nodes; by default Slurm's default partition.
        nodes: the number of compute nodes to probe, ``"all"``, or names such as ``"node[1-4]"``. If ``nodes``
            is 0, toolkit probes no compute node.
        wait: how many seconds toolkit waits for free compute nodes; the largest allowed value is 600.

    Raises:
        BadInput: if you give both ``host`` and ``cluster``, or an invalid value.
        CheckFailed: if the probe's output is truncated.
        Missing: if the machine is unreachable.
    """
    from toolkit.job.facts import gather_facts
    from toolkit.probe.asking import NodeChoice

    return gather_facts(
        _host_options(host, cluster, ssh_config), NodeChoice(str(nodes), wait, partition or "")
    ).host


def load_facts(file: StrPath) -> HostFacts:
    """Return the facts of a machine from a file: the output of ``toolkit probe`` (``-o`` or ``--json``), or
    of the script ``containers/probe.sh``.

    Raises:
        BadInput: if the file is not a valid facts file.
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
    """Predict for each launch mode whether an image runs on a cluster, as ``toolkit doctor`` does.

    Args:
        image: an image name as for :func:`inspect`, or the facts of an image.
        place: the facts of the cluster, or a facts file. Without ``place``, toolkit probes the machine that
            ``host`` or ``cluster`` names, by default this machine.
        nodes: the number of nodes; by default the value in the job file, or 2 if the job file has no value.
        ranks_per_node: the number of ranks on each node; by default the value in the job file, or 1 if the
            job file has no value.
        mode: the launch mode to predict; by default toolkit predicts all modes.
        site: the name or the path of a site profile.
        job: a job file in YAML; the other arguments override its values.
        host, cluster, ssh_config: as in :func:`probe`.
        partition: the Slurm partition of the job; toolkit probes one node of the partition.
        command: the command that each rank runs. If ``command`` is given, the prediction is for the MPI
            library that the command's program loads.
        tell: receives progress messages.

    Returns:
        The verdict. ``verdict.chosen`` is the launch mode to use, or None if toolkit predicts that every mode
            fails.

    Raises:
        BadInput: if an argument or a file is invalid.
        CheckFailed: if the image is damaged, or the probe's output is truncated.
        Missing: if the machine is unreachable.
    """
    from toolkit.job.diagnosis import LaunchQuestion, diagnose, request_launch

    host_options = _host_options(host, cluster, ssh_config)
    if place is not None and (host_options.remote or ssh_config is not None or partition is not None):
        raise BadInput(
            "place: this argument contains the facts of the host, so it cannot be combined with host, "
            "cluster, ssh_config or partition"
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
    return diagnose(given, facts, asked, host_options, partition, tell).verdict


def _host_options(host: str | None, cluster: str | None, ssh_config: StrPath | None) -> "HostOptions":
    from toolkit.job.places import HostOptions

    return HostOptions(host, cluster, None if ssh_config is None else Path(ssh_config))
