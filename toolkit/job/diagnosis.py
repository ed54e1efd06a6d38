"""Predict the result of a launch for ``toolkit doctor``.

With ``--site`` or ``--job``, toolkit predicts the result of the job that ``toolkit launch`` would start.
"""

import posixpath
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from toolkit.engine.predict import predict
from toolkit.errors import BadInput
from toolkit.files import hash_file
from toolkit.image.software.contents import Contents
from toolkit.job.contained import UndecidedImage, with_answer
from toolkit.job.facts import read_or_probe
from toolkit.job.places import HostOptions
from toolkit.job.program_check import program_faults
from toolkit.job.rank_view import inspect_contents, read_command_here, view_of_command, view_of_job
from toolkit.job.request.envfile import clear_env, env_file
from toolkit.job.request.inputs import StartableImage
from toolkit.job.request.keys import KeyDemand
from toolkit.job.request.layering import announce, merge_request
from toolkit.job.request.locations import named_image
from toolkit.launch.from_profile import folder_of
from toolkit.launch.loaded import with_runtime
from toolkit.launch.request import layers
from toolkit.launch.request.gpus import may_have_gpus
from toolkit.launch.request.layers import OPTION
from toolkit.launch.request.specify import JobPaths, name_of, request_of, specify
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Mode, Request, Verdict
from toolkit.model.progress import Tell
from toolkit.model.rank import WHOLE_IMAGE, RankView
from toolkit.model.site import Site
from toolkit.model.stack import ENV_MOUNT
from toolkit.program.starter_counts import read_starter_counts
from toolkit.runtime import apptainer

NODES = 2
"""The default number of nodes of a launch. With two nodes, the prediction covers the network as well."""


_NO_JOB = JobFile()


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The launch whose result ``toolkit doctor`` predicts, and its site.

    ``words`` are the options of ``toolkit doctor`` for this launch, such as ``("--site", "lumi")``. ``view``
    has the command of a rank, and the folders in the image that are hidden by mounts. ``modules`` are the
    environment modules that the job loads. ``env`` is the file of the user's environment image.
    """

    request: Request
    site: Site | None = None
    modules: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    view: RankView = WHOLE_IMAGE
    runtime: str = ""
    env: Path | None = None
    job: JobFile = _NO_JOB
    """The job whose command or trainer toolkit checks. A job with neither passes the check."""

    def judge(self, host: HostFacts, image: ImageFacts) -> "Diagnosis":
        """Return the prediction for the launch on a host.

        If the site profile or the job names an environment module that provides a container runtime, toolkit
        adds this runtime to the host's facts.
        """
        known = with_runtime(host, self.site, self.modules, self.runtime)
        return Diagnosis(known, image, self, predict(known, image, self.request, self.site))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A prediction with its inputs: the host's facts, the image's facts and the launch."""

    host: HostFacts
    image: ImageFacts
    request: LaunchRequest
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchQuestion:
    """The options of ``toolkit doctor`` that describe a launch.

    If a field is ``None``, toolkit uses the value in the job file or the default value. ``command`` is the
    command of a rank and overrides the program of the job file.
    """

    image: str
    site: str | None = None
    job_file: str | None = None
    partition: str | None = None
    nodes: int | None = None
    ranks_per_node: int | None = None
    mode: Mode | None = None
    command: tuple[str, ...] = ()
    runtime: str | None = None
    env_image: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The options ``--site``, ``--job``, ``--runtime`` and ``--env-image`` that the user gave, with their
        values, such as ``("--site", "lumi")``.
        """
        options = {
            "--site": self.site,
            "--job": self.job_file,
            "--runtime": self.runtime,
            "--env-image": self.env_image,
        }
        return tuple(word for name, value in options.items() if value for word in (name, value))


def request_launch(question: LaunchQuestion, tell: Tell) -> LaunchRequest:
    """Return the launch that the options and the job file describe; options override the job file.

    toolkit does not ask the cluster for the values of variables, so the path of the run's folder may contain
    a variable such as ``$WORK``.

    Raises:
        BadInput: if a value is wrong; the message says where the value is set, and what values are valid.
    """
    numbers = {"nodes": question.nodes, "ranks_per_node": question.ranks_per_node, "mode": question.mode}
    layers.check_layer(numbers, OPTION, {}, strict=True)
    if question.site or question.job_file:
        return _request_of_job(question, tell)
    return _request_of_options(question)


def _request_of_options(question: LaunchQuestion) -> LaunchRequest:
    """Return the launch that the options describe, if the user gave neither ``--site`` nor ``--job``."""
    command, shown = question.command, read_command_here(question.command)
    counts = read_starter_counts(dict(shown.says), question.nodes or NODES)
    request = Request(
        nodes=question.nodes or counts.nodes or NODES,
        ranks_per_node=question.ranks_per_node or counts.ranks_per_node or 1,
        mode=question.mode,
        command=command,
        joins=shown.joins,
        says=dict(shown.says),
    )
    env = env_file(question.env_image)
    view = msgspec.structs.replace(view_of_command(command), env=str(env or ""))
    job = JobFile(
        image=question.image, command=command, nodes=request.nodes, ranks_per_node=request.ranks_per_node
    )
    return LaunchRequest(
        request, words=question.words, view=view, runtime=question.runtime or "", env=env, job=job
    )


def _request_of_job(question: LaunchQuestion, tell: Tell) -> LaunchRequest:
    """Return the launch that ``toolkit launch`` would start with the site profile or the job file."""
    values = {
        "image": question.image,
        "site": question.site,
        "partition": question.partition,
        "ranks_per_node": question.ranks_per_node,
        "mode": question.mode,
        "runtime": question.runtime,
        "env_image": question.env_image,
        "nodes": question.nodes or (None if question.job_file else NODES),
    }
    options = {name: value for name, value in values.items() if value is not None}
    merged = merge_request(options, question.command, question.job_file)
    job, view = merged.job, view_of_job(merged.job, merged.site)
    if merged.job.trainer is None and not merged.job.command:
        merged = merge_request(options, ("COMMAND",), question.job_file)
    announce(merged, tell=tell)
    folder = posixpath.join(folder_of(merged.job, merged.site), "runs", name_of(merged.job))
    spec = specify(merged.job, JobPaths(folder, question.image))
    request = request_of(
        spec,
        merged.job.env or {},
        merged.job.mode,
        merged.site,
        merged.job.program,
        read_command_here(question.command),
    )
    if not view.command:  # the user gave no command, so remove the placeholder COMMAND
        request = msgspec.structs.replace(request, command=())
    env = env_file(merged.job.env_image)
    return LaunchRequest(request, merged.site, spec.modules, question.words, view, spec.runtime, env, job)


def with_env(launch_request: LaunchRequest, image: ImageFacts, image_path: str, tell: Tell) -> LaunchRequest:
    """Return the launch with the mounts and variables of the user's environment image (``--env-image``).

    Raises:
        BadInput: if the job's image is not a file on this machine.
    """
    file = Path(image_path)
    if not file.is_file():
        raise BadInput(
            f"--env-image: the job's image must be a SIF file, but {image_path} is not a file",
            fix="give the SIF file of the job's image as IMAGE",
        )
    digest = (image.digest or "").removeprefix("sha256:") or hash_file(file)
    startable = StartableImage(image_path, image, digest, file, image_path)
    mounted = clear_env(launch_request.env, startable, KeyDemand(required_keys=(), unchecked=True), tell)
    request = launch_request.request
    env = {**mounted.paths, **request.env}
    binds = (*request.binds, *mounted.binds, apptainer.bind_image(mounted.cluster_path, ENV_MOUNT))
    judged = msgspec.structs.replace(request, env=env, binds=binds, projects=mounted.binds)
    return replace(launch_request, request=judged)


def diagnose(
    image: str | ImageFacts,
    place: HostFacts | Path | None,
    request: LaunchRequest,
    host_options: HostOptions,
    partition: str | None,
    tell: Tell,
    *,
    run: bool = False,
) -> Diagnosis:
    """Read the image and the host's facts, and return the prediction for the launch.

    Args:
        image: the name of an image, or the image's facts.
        place: the facts of a host, or a facts file. If ``None``, toolkit probes a host.
        request: the launch whose result toolkit predicts.
        host_options: names the host to probe.
        partition: the Slurm partition from which toolkit probes a node.
        tell: the listener for progress messages.
        run: whether to start a container on a node, to read variables that the image's start scripts set.

    Raises:
        BadInput: if toolkit cannot read the image or the facts file.
        CheckFailed: if the image is damaged, or the output of the probe is incomplete.
        Missing: if the host is unreachable.
    """
    image_path, contents = "", None
    if isinstance(image, str):
        image_path = named_image(image)
        image, contents = inspect_contents(image_path, request.view, tell)
        if request.env:
            request = with_env(request, image, image_path, tell)
    asks = run and place is None
    if not isinstance(place, HostFacts):
        on_this_machine = place is None and not host_options.remote
        place = read_or_probe(place, host_options, partition)
        if on_this_machine and request.site:
            _check_here(place, request.site)
    if asks and image.format == "sif":
        view = with_answer(
            request.view, UndecidedImage(image, Path(image_path), place, host_options, partition), tell
        )
        if view.told is not None:
            image, contents = inspect_contents(image_path, view, tell)
    if contents is not None:
        request = _with_faults(request, place, image, contents)
    return request.judge(place, image)


def _with_faults(
    launch_request: LaunchRequest, host: HostFacts, image: ImageFacts, contents: Contents
) -> LaunchRequest:
    """Find faults in the job's command or trainer, and return the launch with these faults added.

    ``toolkit launch`` refuses a job with such faults.
    """
    job = launch_request.job
    gpus = may_have_gpus(job, launch_request.site, host)
    faults = program_faults(job, image, contents, launch_request.env, gpus=gpus)
    return replace(launch_request, request=msgspec.structs.replace(launch_request.request, faults=faults))


def _check_here(host: HostFacts, site: Site) -> None:
    """Check that this machine can be a node of the site.

    Raises:
        BadInput: if the site uses Slurm and this machine has no Slurm.
    """
    if site.scheduler == "slurm" and "slurm" in host.absent:
        raise BadInput(
            f"--site: this machine has no Slurm, so it is not a node of {site.title}",
            fix="name a login node with `--host LOGIN`; or give a file that `toolkit probe` wrote on a login "
            "node: `--facts FILE`",
        )
