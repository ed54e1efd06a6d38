"""Make a notebook's job out of what a person asked for, the site and the image; nothing is changed there."""

from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.engine.plan import plan as plan_launch
from toolkit.engine.predict import foresee
from toolkit.errors import BadInput
from toolkit.job import prepare
from toolkit.job.offline import check_not_there, image_facts
from toolkit.job.prepare import Prepared, target_of
from toolkit.job.project.checks import refuse
from toolkit.job.request.envfile import asked_over, env_file, over
from toolkit.job.request.flags import Flags
from toolkit.job.request.gate import demand_of
from toolkit.job.request.inputs import StartableImage, image_of
from toolkit.job.request.layering import JobRequest, announce, asked
from toolkit.job.request.locations import check_directory, login_variable
from toolkit.launch import loaded, notebook, unseen
from toolkit.launch.jobscript.choose import ModeChoice
from toolkit.launch.request.complete import OUTPUT_OF_ARRAY
from toolkit.launch.request.layers import DEFAULTS
from toolkit.launch.request.specify import JobPaths, request_of, specify
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.launchfault import LaunchFault
from toolkit.model.prediction import Request
from toolkit.model.progress import Tell
from toolkit.model.site import Site
from toolkit.run.command import Runner
from toolkit.runtime import apptainer, named

_FIELDS = {"bind": "binds"}
"""The option whose name in Python differs from the field of a job."""

_JUPYTER = {"jupyterlab", "notebook", "jupyter_server"}
"""Modules that ``slurm/notebook.py`` starts."""

_WHY = "one task, which speaks no MPI"


class NotebookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for: the job, and two folders of the cluster that are empty where none is named.

    ``flags`` hold what is demanded of the image.
    """

    job: JobRequest
    flags: Flags
    folder: str
    packages: str


def wanted(given: Mapping[str, Any], folder: str, packages: str, flags: Flags, tell: Tell) -> NotebookRequest:
    """Join the options of the command with site and settings, as for other jobs.

    Raises:
        BadInput: for an option that cannot be.
    """
    said = {_FIELDS.get(name, name): value for name, value in given.items() if value not in (None, ())}
    said |= {"nodes": 1, "ranks_per_node": 1}
    made = asked(said, (notebook.NAME,))
    announce(made, tell=tell)
    if made.site and made.site.scheduler != "slurm":
        raise BadInput(
            f"--site {made.job.site}: a notebook is a job of Slurm; there is {made.site.scheduler}"
        )
    for option, path in (("folder", folder), ("packages", packages)):
        if path and not path.startswith("/"):
            raise BadInput(f"--{option} {path}: give the full path on the cluster")
        apptainer.bind(path)
    check_directory(made.job.directory or "")
    env_file(made.job.env_image)
    demand_of(made, flags.verify_key, flags.no_verify)  # refused before anybody is asked
    return NotebookRequest(job=made, flags=flags, folder=folder, packages=packages)


def prepared(runner: Runner, asking: NotebookRequest, tell: Tell, *, remote: bool) -> Prepared:
    """Return the job; ``remote`` says that the image has to be copied to the runner's place.

    Raises:
        BadInput: for what the site does not have.
        Missing: if the image is not on this machine, or the place does not answer.
    """
    job, site = asking.job.job, asking.job.site
    image = image_of(job.image or "", site)
    target = target_of(runner, asking.job, asking.flags, image, tell, remote=remote)
    facts = target.image.facts
    folder = asking.folder or login_variable(runner, "WORK") or login_variable(runner, "HOME") or target.base
    _check_runtime(loaded.command_of(target.host, site, job.runtime or ""))
    places = over(JobPaths(target.run(notebook.NAME), target.there), target.env)
    spec = _spec(specify(job, places), asking, folder, facts)
    prepare.check_queue(target, spec, asking.job, asking.flags, tell)
    if not asking.packages:
        refuse(_no_jupyter(target.image), asking.flags, tell)
    request = request_of(spec, job.env or {}, notebook.MODE, site, "serial")
    choice = _launch(target.host, facts, asked_over(request, spec, target.env), site)
    return prepare.prepared(target, asking.job, spec, choice, _WHY, asking.job.notes())


def _no_jupyter(image: StartableImage) -> list[LaunchFault]:
    """Return the fault of an image in which no Jupyter is found; none if its modules are not all known."""
    offers = image.offers
    if offers is None or not offers.whole or _JUPYTER & offers.modules:
        return []
    return [
        LaunchFault(
            f"{image.name} has no Jupyter",
            "use an image with it, such as the recipe tf2.15-notebook-cpu, or --packages DIR",
        )
    ]


def unseen_script(asking: NotebookRequest, site: Site, tell: Tell) -> str:
    """Return the script of a notebook for a site that is not asked anything.

    Raises:
        BadInput: for what the site does not have, or only it knows.
    """
    job = asking.job.job
    check_not_there(job)
    image = image_facts(asking.job, asking.flags, tell)
    site = unseen.with_folder(job, site)
    base = unseen.folder_of(job, site)
    places = unseen.places(base, notebook.NAME, image)
    _check_runtime(job.runtime or site.container.command)
    spec = _spec(specify(job, places), asking, asking.folder or base, image)
    tell.step(f"Nothing was asked of {site.title}: the image has to be brought to {places.image}")
    if not asking.folder:
        tell.step(f"The notebook shows {base} in this script; --folder names another one there")
    why = f"{_WHY}; nothing was asked of {site.title}"
    return unseen.script_of(spec, job, site, image, notebook.MODE, why, asking.job.notes())[1]


def _check_runtime(command: str) -> None:
    """Refuse a runtime by which the tunnel to a notebook does not start.

    Raises:
        BadInput: unless it is Apptainer or Singularity.
    """
    if named(command) is not named(""):
        raise BadInput(
            f"--runtime {command}: a notebook starts with Apptainer or Singularity alone",
            fix="leave --runtime out, and give a SIF file",
        )


def _launch(host: HostFacts, image: ImageFacts, request: Request, site: Site | None) -> ModeChoice:
    """Return the launch of one task, which speaks no MPI: nothing that is judged of an MPI stops it."""
    made = plan_launch(host, image, request, notebook.MODE, site)
    return ModeChoice(foresee(host, image, request, made), made, forced=False)


def _spec(spec: JobSpec, asking: NotebookRequest, folder: str, image: ImageFacts) -> JobSpec:
    """Return the specification as that of one task which is neither stopped in time nor started again."""
    packages = [apptainer.bind(asking.packages, read_only=True)] if asking.packages else []
    return msgspec.structs.replace(
        spec,
        name=notebook.NAME,
        command=notebook.command(spec.directory, folder, asking.packages, image),
        nodes=1,
        ranks_per_node=1,
        array="",
        output=(DEFAULTS.output or "") if spec.output == OUTPUT_OF_ARRAY else spec.output,
        requeue=False,
        chain=0,
        elastic=False,
        min_nodes=0,
        warning=0,
        preflight=False,
        binds=(*spec.binds, apptainer.bind(folder), *packages),
    )
