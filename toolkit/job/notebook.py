"""Prepare the job of a notebook from the user's options, the site and the image."""

from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.engine.planning.plan import plan as plan_launch
from toolkit.engine.predict import predict_plan
from toolkit.errors import BadInput
from toolkit.job import prepare
from toolkit.job.offline import check_not_there, uncontacted_image
from toolkit.job.prepare import Prepared
from toolkit.job.project.checks import refuse
from toolkit.job.request.envfile import env_file, request_with_env, with_env_file
from toolkit.job.request.flags import Flags
from toolkit.job.request.gate import demand_of
from toolkit.job.request.inputs import StartableImage, image_of
from toolkit.job.request.layering import JobRequest, announce, merge_request
from toolkit.job.request.locations import check_directory, login_variable
from toolkit.job.target import target_of
from toolkit.launch import from_profile, loaded, notebook
from toolkit.launch.jobscript.choose import ModeChoice
from toolkit.launch.request.complete import OUTPUT_OF_ARRAY
from toolkit.launch.request.layers import DEFAULTS
from toolkit.launch.request.specify import JobPaths, request_of, specify
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import LaunchFault
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Request
from toolkit.model.progress import Tell
from toolkit.model.site import Site
from toolkit.run.command import Runner
from toolkit.runtime import apptainer, runtime_of_name

_JUPYTER = {"jupyterlab", "notebook", "jupyter_server"}
"""The Python modules of Jupyter; ``slurm/notebook.py`` needs one of these modules."""

_WHY = "a notebook is one task without MPI"


class NotebookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``toolkit notebook``.

    ``folder`` is the cluster folder that Jupyter shows. ``packages`` is a cluster folder with the Python
    packages of Jupyter. ``folder`` and ``packages`` are empty strings if the user does not name these
    folders. ``flags`` include the options for the check of the image's signatures.
    """

    job: JobRequest
    flags: Flags
    folder: str
    packages: str


def merge_notebook(
    options: Mapping[str, Any], folder: str, packages: str, flags: Flags, tell: Tell
) -> NotebookRequest:
    """Merge the options of ``toolkit notebook`` with the site profile and the settings.

    Raises:
        BadInput: if an option is wrong.
    """
    request = merge_request({**options, "nodes": 1, "ranks_per_node": 1}, (notebook.NAME,))
    announce(request, tell=tell)
    if request.site and request.site.scheduler != "slurm":
        raise BadInput(
            f"--site {request.job.site}: the site uses {request.site.scheduler}; a notebook needs Slurm"
        )
    for option, path in (("folder", folder), ("packages", packages)):
        if path and not path.startswith("/"):
            raise BadInput(f"--{option} {path}: not an absolute path on the cluster")
        apptainer.bind(path)
    check_directory(request.job.directory or "")
    env_file(request.job.env_image)
    demand_of(request, flags.verify_key, flags.no_verify)  # check before toolkit connects to the host
    return NotebookRequest(job=request, flags=flags, folder=folder, packages=packages)


def prepare_notebook(
    runner: Runner, notebook_request: NotebookRequest, tell: Tell, *, remote: bool
) -> Prepared:
    """Return the prepared job of a notebook.

    ``remote`` is true if the job runs on another machine. toolkit may have to copy the image there.

    Raises:
        BadInput: if the site cannot run the job.
        CheckFailed: if toolkit finds a fault in the job, such as an image without Jupyter.
        Missing: if the image is not on this machine, or the host is unreachable.
    """
    job, site = notebook_request.job.job, notebook_request.job.site
    image = image_of(job.image or "", site)
    target = target_of(runner, notebook_request.job, notebook_request.flags, image, tell, remote=remote)
    facts = target.image.facts
    folder = (
        notebook_request.folder
        or login_variable(runner, "WORK")
        or login_variable(runner, "HOME")
        or target.base
    )
    _check_runtime(loaded.command_of(target.host, site, job.runtime or ""))
    places = with_env_file(JobPaths(target.run(notebook.NAME), target.image_path), target.env)
    spec = _spec(specify(job, places), notebook_request, folder, facts)
    prepare.check_queue(target, spec, notebook_request.job, notebook_request.flags, tell)
    if not notebook_request.packages:
        refuse(_no_jupyter(target.image), notebook_request.flags, tell)
    request = request_of(spec, job.env or {}, notebook.MODE, site, "serial")
    choice = _launch(target.host, facts, request_with_env(request, spec, target.env), site)
    return prepare.with_script(target, notebook_request.job, spec, choice, _WHY, notebook_request.job.notes())


def _no_jupyter(image: StartableImage) -> list[LaunchFault]:
    """Return a fault if toolkit knows all modules of the image, and Jupyter is not one of them."""
    offers = image.offers
    if offers is None or not offers.whole or _JUPYTER & offers.modules:
        return []
    return [
        LaunchFault(
            f"{image.name} does not contain Jupyter",
            "use an image with Jupyter, such as the image of the recipe tf2.15-notebook-cpu; or name a "
            "cluster folder with Jupyter: `--packages DIR`",
        )
    ]


def unseen_script(notebook_request: NotebookRequest, site: Site, tell: Tell) -> str:
    """Return the job script of a notebook for a site, without a connection to the cluster.

    Raises:
        BadInput: if the site cannot run the job, or an option needs a connection to the cluster.
    """
    job = notebook_request.job.job
    check_not_there(job)
    image = uncontacted_image(notebook_request.job, notebook_request.flags, tell).facts
    site = from_profile.with_folder(job, site)
    base = from_profile.folder_of(job, site)
    places = from_profile.places(base, notebook.NAME, image)
    _check_runtime(job.runtime or site.container.command)
    spec = _spec(specify(job, places), notebook_request, notebook_request.folder or base, image)
    tell.step(f"Written from the site profile; {site.title} was not contacted")
    tell.step(f"Copy the image to {places.image} before you submit")
    if not notebook_request.folder:
        tell.step(f"The notebook shows the folder {base}; choose another folder with --folder")
    why = f"{_WHY}; {site.title} was not contacted"
    return from_profile.script_of(spec, job, site, image, notebook.MODE, why, notebook_request.job.notes())[1]


def _check_runtime(command: str) -> None:
    """Check that the container runtime is Apptainer or Singularity.

    toolkit supports notebooks only with these two runtimes.

    Raises:
        BadInput: if the container runtime is neither Apptainer nor Singularity.
    """
    if runtime_of_name(command) is not runtime_of_name(""):
        raise BadInput(
            f"--runtime {command}: a notebook needs Apptainer or Singularity",
            fix="leave out `--runtime`, and give a SIF file",
        )


def _launch(host: HostFacts, image: ImageFacts, request: Request, site: Site | None) -> ModeChoice:
    """Return the launch of a notebook: one task without MPI.

    A notebook does not use MPI, so toolkit launches the notebook even if the image's MPI has faults.
    """
    launch_plan = plan_launch(host, image, request, notebook.MODE, site)
    return ModeChoice(predict_plan(host, image, request, launch_plan), launch_plan, forced=False)


def _spec(spec: JobSpec, notebook_request: NotebookRequest, folder: str, image: ImageFacts) -> JobSpec:
    """Return ``spec`` changed for a notebook: one task, without requeue, chained jobs or a warning signal."""
    packages = (
        [apptainer.bind(notebook_request.packages, read_only=True)] if notebook_request.packages else []
    )
    return msgspec.structs.replace(
        spec,
        name=notebook.NAME,
        command=notebook.command(spec.directory, folder, notebook_request.packages, image),
        nodes=1,
        ranks_per_node=1,
        array="",
        sweep=(),
        output=(DEFAULTS.output or "") if spec.output == OUTPUT_OF_ARRAY else spec.output,
        requeue=False,
        chain=0,
        elastic=False,
        min_nodes=0,
        warning=0,
        preflight=False,
        binds=(*spec.binds, apptainer.bind(folder), *packages),
    )
