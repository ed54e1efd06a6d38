"""Make a notebook's job out of what a person asked for, the site and the image; nothing is changed there."""

import posixpath
from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.cli.flags import Flags
from toolkit.cli.gate import clear, demand_of
from toolkit.cli.joboptions import environment
from toolkit.cli.layering import Asked, announce, asked
from toolkit.cli.offline import check_not_there, image_facts
from toolkit.cli.prepare import to_be_copied, to_record
from toolkit.cli.shared import image_of, look, startable
from toolkit.cli.whereabouts import check_directory, directory, login_variable
from toolkit.engine.plan import plan as plan_launch
from toolkit.engine.predict import foresee
from toolkit.errors import BadInput
from toolkit.launch import notebook, plan, records, unseen
from toolkit.launch.choose import Choice
from toolkit.launch.complete import OUTPUT_OF_ARRAY
from toolkit.launch.layers import DEFAULTS
from toolkit.launch.script import job_script
from toolkit.launch.specify import Places, request_of, specify
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.hidden import Hidden, hidden
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.prediction import Request
from toolkit.model.progress import Tell
from toolkit.model.site import Site
from toolkit.probe.asking import of_job
from toolkit.probe.probe import probe
from toolkit.run.command import Runner
from toolkit.run.stage import Parcel

_FIELDS = {"cpus": "cpus_per_rank", "gpus": "gpus_per_node", "bind": "binds"}
"""Options that have another name here than in a job: it is one task on one node."""

_WHY = "one task, which speaks no MPI"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for: the job, and two folders of the cluster that are empty where none is named.

    ``flags`` hold what is demanded of the image.
    """

    job: Asked
    flags: Flags
    folder: str
    packages: str


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job whose files are to be copied and whose script is to be submitted.

    ``runtime`` is the command that starts containers there.
    """

    record: JobRecord
    script: str
    parcels: tuple[Parcel, ...]
    runtime: str
    secrets: Mapping[str, Hidden]


def wanted(given: Mapping[str, Any], folder: str, packages: str, flags: Flags) -> Wanted:
    """Join the options of the command with site and settings, as those of a job are.

    Raises:
        BadInput: for an option that cannot be.
    """
    said = {_FIELDS.get(name, name): value for name, value in given.items() if value not in (None, ())}
    said["env"] = environment(said.pop("env", ()))
    said |= {"nodes": 1, "ranks_per_node": 1}
    made = asked(said, (notebook.NAME,))
    announce(made)
    if made.site and made.site.scheduler != "slurm":
        raise BadInput(
            f"--site {made.job.site}: a notebook is a job of Slurm; there is {made.site.scheduler}"
        )
    for option, path in (("folder", folder), ("packages", packages)):
        if path and not path.startswith("/"):
            raise BadInput(f"--{option} {path}: give the full path on the cluster")
        plan.bind(path)
    check_directory(made.job.directory or "")
    demand_of(made, flags.verify_key, flags.no_verify)  # refused before anybody is asked
    return Wanted(job=made, flags=flags, folder=folder, packages=packages)


def prepared(runner: Runner, asking: Wanted, tell: Tell, *, remote: bool) -> Prepared:
    """Return the job; ``remote`` says that the image has to be copied to the runner's place.

    Raises:
        BadInput: for what the site does not have.
        Missing: if the image is not on this machine, or the place does not answer.
    """
    job, site = asking.job.job, asking.job.site
    wanted = image_of(job.image or "", site)
    tell.step(f"Reading {wanted.name} and asking {runner.place} what it has")
    image = startable(look(runner, wanted, site, tell, remote=remote))
    flags = asking.flags
    cleared = clear(image, demand_of(asking.job, flags.verify_key, flags.no_verify), tell)
    host = probe(runner, of_job(job.partition))
    named = asking.job.origins.get("directory", "").startswith("site ")
    base = directory(runner, job.directory, remote=remote, variables=named)
    there, copied = to_be_copied(image, base)
    folder = asking.folder or login_variable(runner, "WORK") or login_variable(runner, "HOME") or base
    places = Places(posixpath.join(base, "runs", records.new_key(notebook.NAME)), there)
    spec = _spec(specify(job, places), asking, folder, image.facts)
    runtime = site.container.command if site else plan.runtime_of(host)
    choice = _launch(host, image.facts, request_of(spec, job.env or {}, notebook.MODE, site), site)
    notes = (cleared.note, *asking.job.notes())
    return Prepared(
        record=to_record(runner.place, spec, choice, cleared),
        script=job_script(spec, choice.plan, _WHY, runtime, site, image.facts, notes),
        parcels=copied,
        runtime=runtime,
        secrets=hidden(job.env or {}),
    )


def unseen_script(asking: Wanted, site: Site, tell: Tell) -> str:
    """Return the script of a notebook for a site that is not asked anything.

    Raises:
        BadInput: for what the site does not have, or only it knows.
    """
    job = asking.job.job
    check_not_there(job)
    image = image_facts(asking.job, asking.flags, tell)
    base = unseen.folder_of(job, site)
    site = msgspec.structs.replace(site, directory=base if "$" in base else site.directory)
    there = posixpath.join(base, "images", posixpath.basename(image.path))
    places = Places(posixpath.join(base, "runs", records.new_key(notebook.NAME)), there)
    spec = _spec(specify(job, places), asking, asking.folder or base, image)
    tell.step(f"Nothing was asked of {site.title}: the image has to be brought to {there}")
    if not asking.folder:
        tell.step(f"The notebook shows {base} in this script; --folder names another one there")
    why = f"{_WHY}; nothing was asked of {site.title}"
    request = request_of(spec, job.env or {}, notebook.MODE, site)
    choice = _launch(HostFacts(place=site.title), image, request, site)
    return job_script(spec, choice.plan, why, site.container.command, site, image, asking.job.notes())


def _launch(host: HostFacts, image: ImageFacts, request: Request, site: Site | None) -> Choice:
    """Return the launch of one task, which speaks no MPI: nothing that is judged of an MPI stops it."""
    made = plan_launch(host, image, request, notebook.MODE, site)
    return Choice(foresee(host, image, request, made), made, forced=False)


def _spec(spec: JobSpec, asking: Wanted, folder: str, image: ImageFacts) -> JobSpec:
    """Return the specification as that of one task which is neither stopped in time nor started again."""
    packages = [plan.bind(asking.packages, read_only=True)] if asking.packages else []
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
        binds=(*spec.binds, plan.bind(folder), *packages),
    )
