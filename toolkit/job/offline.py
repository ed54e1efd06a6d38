"""``toolkit launch --site S --dry-run``: write the job script from the site profile, without a connection to
the cluster."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from toolkit import __version__
from toolkit.data import cache_dir, find, names
from toolkit.errors import BadInput
from toolkit.job.program_check import check_program
from toolkit.job.project.code import code_of
from toolkit.job.project.ranks import check_ranks
from toolkit.job.project.sweep_checks import check_sweep, tell_sweep
from toolkit.job.rank_view import inspect_contents, view_of_job
from toolkit.job.request.flags import Flags, check_words, tell_fix
from toolkit.job.request.inputs import StartableImage, find_startable
from toolkit.job.request.keys import merge_demands
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.locations import ON_CLUSTER, data_folder, image_here, is_path, program_file
from toolkit.job.sources import Sources
from toolkit.knowledge.strict import tables, text_of
from toolkit.launch import from_profile
from toolkit.launch.from_profile import UncontactedJob
from toolkit.launch.request import trainers
from toolkit.launch.request.gpus import tell_idle
from toolkit.launch.request.variables import SECRETS
from toolkit.model.facts import ImageFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.progress import Tell
from toolkit.model.site import Site
from toolkit.near import suggest_near

_RECIPES = "recipes"
_MPIS = ("mpich", "intelmpi", "openmpi")


def script_for(request: JobRequest, site: Site, flags: Flags, tell: Tell) -> str:
    """Return the script of a job for a site, without a connection to the cluster.

    Raises:
        BadInput: if an option is wrong, or the site has too few nodes, cores or GPUs.
        CheckFailed: if the image lacks a required signature.
        Missing: if the data folder does not exist.
    """
    job = request.job
    fix = check_words(request, flags)
    check_not_there(job)
    code = code_of(job, flags)
    check_ranks(job, code, flags)
    check_sweep(job, code, flags)
    tell_sweep(job, code, tell, project_copied=False)
    folder = _data(job, tell)
    startable = uncontacted_image(request, flags, tell)
    image = startable.facts
    sources = Sources(startable.local_file or Path(image.path), None, fix, _program(job), code)
    # If toolkit finds the program's Python files here, it tells the user to submit the job script in the
    # program's folder. Without such files, the submit folder is unknown, so do not check relative paths.
    here = replace(flags, sync=code is not None and bool(code.facts.facts))
    gpus = site.has_gpus(job.partition, job.gpus_per_node)
    sources, job = check_program(sources, request, here, startable, tell, gpus=gpus)
    if image.architecture not in {None, site.architecture}:
        tell.step(f"{job.image} is for {image.architecture}; {site.title} has {site.architecture} processors")
    if fix:
        tell_fix(flags, fix, image, tell)
    notes = request.notes(explain=flags.explain)
    wanted = msgspec.structs.replace(job, data=str(folder)) if folder else job
    shown = sources.code.facts if sources.code else None
    uncontacted = from_profile.write(
        wanted, site, image, notes, fix=fix, command_facts=shown, copies=flags.copies
    )
    tell_idle(job.image or "", uncontacted.spec, site, None, image, tell)
    tell.step(f"Written from the site profile; {site.title} was not contacted")
    for line in _steps(uncontacted, folder, sources):
        tell.step(line)
    return uncontacted.script


def _steps(uncontacted: UncontactedJob, data: Path | None, sources: Sources) -> Iterator[str]:
    """Yield instructions for the user: what to do on the cluster before submitting the script."""
    spec, code = uncontacted.spec, sources.code
    yield f"Copy the image to {spec.image} before you submit"
    if code and code.facts.facts:
        yield (
            "On the cluster, submit the job script in the folder of the program, because the job starts in "
            "the folder in which you submit the job script"
        )
    if uncontacted.data:
        yield f"Copy the data{f' in {data}' if data else ''} to {uncontacted.data}"
    if sources.program:
        yield f"Copy the program {sources.program} to {uncontacted.program}"
    if spec.secrets:
        yield (
            f"Write the values of {', '.join(spec.secrets)} into {spec.directory}/{SECRETS}, as lines of the "
            "form export NAME='VALUE', and run chmod 600 on this file"
        )


def check_not_there(job: JobFile) -> None:
    """Raise an error if an option needs a connection to the cluster.

    toolkit uses this check for dry runs without ``--host``, which do not connect to the cluster.
    """
    if job.env_image:
        raise BadInput(
            f"--env-image {job.env_image}: without `--host`, toolkit does not connect to the cluster and "
            "cannot compare this environment with the image",
            fix="add `--host USER@LOGIN`, so that toolkit connects to the cluster",
        )
    for option, value in (("image", job.image), ("data", job.data)):
        if value and value.startswith(ON_CLUSTER):
            raise BadInput(
                f"--{option} {value}: the file is on the cluster, but without `--host` toolkit does not "
                "connect to the cluster",
                fix="add `--host USER@LOGIN` to `--dry-run`, so that toolkit connects to the cluster",
            )


def uncontacted_image(request: JobRequest, flags: Flags, tell: Tell) -> StartableImage:
    """Return a job's image with its facts. If the image is not on this machine, toolkit assumes facts,
    usually from the recipe that has the image's name.

    Raises:
        BadInput: if ``--image`` is neither the path of a SIF file nor the name of a recipe.
        CheckFailed: if the image lacks a required signature.
    """
    name = request.job.image or ""
    local_file = image_here(name)
    offers = None
    if local_file:
        facts, offers = inspect_contents(local_file, view_of_job(request.job, request.site), tell)
    else:
        facts = _facts_by_name(name, tell)
    image = StartableImage(Path(facts.path).name, facts, "", local_file, name, offers=offers)
    demand = merge_demands(flags.verify_key, flags.no_verify, request.key, request.site, request.job.site)
    if local_file or demand.required_keys:
        from toolkit.job.request.gate import clear  # slow import, needed only for signatures

        clear(find_startable(image), demand, tell)
    return image


def _program(job: JobFile) -> Path | None:
    """Return the Python file of the user's own trainer; ``None`` for any other job."""
    known = trainers.find(job.trainer) if job.trainer else None
    return program_file(job.trainer or "") if known and known.own else None


def _data(job: JobFile, tell: Tell) -> Path | None:
    """Return the folder of a trainer's data on this machine.

    The result is ``None`` for a command, and for a trainer that reads no data. The result is also ``None`` if
    the trainer's data set is not on this machine.

    Raises:
        BadInput: if the folder of ``--data`` does not exist.
        Missing: if the folder of a data set lacks files.
    """
    dataset = trainers.find(job.trainer).dataset if job.trainer else ""
    if not job.trainer and job.data:
        tell.step(
            f"Copy the data in {job.data} to the cluster, and give the copy's folder: --env TOOLKIT_DATA=DIR"
        )
    if not job.trainer or not (dataset or job.data):
        return None
    if job.data or (cache_dir() / "data" / dataset).is_dir():
        return data_folder(job.data, dataset)
    tell.step(f"The data set {dataset} is not on this machine yet; download it: toolkit data get {dataset}")
    return None


def _facts_by_name(name: str, tell: Tell) -> ImageFacts:
    """Return assumed facts about an image that is not on this machine.

    The facts are from the recipe ``name``. If ``name`` is a path, the facts name no MPI library; toolkit then
    uses by default the usual launch mode of Open MPI.
    """
    if is_path(name):
        tell.step(f"{name} is not on this machine; toolkit assumes that the image contains Open MPI")
        return ImageFacts(path=name, format="sif")
    if name not in (known := names(_RECIPES, ".toml")):
        raise BadInput(
            f"--image {name}: neither a SIF file nor a recipe{suggest_near(name, known)}; "
            f"recipes: {', '.join(known)}"
        )
    make = f"toolkit image build {name} && toolkit image sif {name} -o build/images/{name}.sif"
    tell.step(f"The image {name} is not built yet; build it: `{make}`")
    file = find(_RECIPES, name, ".toml")
    raw = tables(text_of(file), str(file))
    wanted = raw.get("want", {})
    mpi = next((name for name in _MPIS if name in wanted), None)
    return ImageFacts(
        path=f"{name}.sif",
        format="sif",
        architecture=raw.get("architecture", "x86_64"),
        mpi=ImageMpi(implementation=mpi, version=None, library="", interfaces=None) if mpi else None,
        cuda=wanted.get("cuda"),
        tensorflow=wanted.get("tensorflow"),
        pytorch=wanted.get("torch"),
        jax=wanted.get("jax"),
        horovod=wanted.get("horovod"),
        stack={"recipe": name, "toolkit": __version__},
        absent={} if mpi else {"mpi": "the recipe does not name an MPI"},
    )
