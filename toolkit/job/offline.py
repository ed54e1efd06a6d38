"""``launch --site S --dry-run`` from anywhere: the script for a site, before the image is there."""

from pathlib import Path

import msgspec

from toolkit import __version__
from toolkit.data import cache_dir, find, names
from toolkit.errors import BadInput
from toolkit.job.project.code import code_of
from toolkit.job.project.ranks import check_ranks
from toolkit.job.request.flags import Flags, check_words, tell_fix
from toolkit.job.request.keys import demanded
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.locations import ON_CLUSTER, data_folder, image_here, is_path, program_file
from toolkit.job.sight import view_of
from toolkit.knowledge.strict import tables, text_of
from toolkit.launch import unseen
from toolkit.launch.request import trainers
from toolkit.launch.request.gpus import tell_idle
from toolkit.launch.request.variables import SECRETS
from toolkit.model.facts import ImageFacts, ImageMpi
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.model.rank import RankView
from toolkit.model.site import Site
from toolkit.near import near

_RECIPES = "recipes"
_MPIS = ("mpich", "intelmpi", "openmpi")


def script_for(asked: JobRequest, site: Site, flags: Flags, tell: Tell) -> str:
    """Return the script of a job for a site that is not asked anything.

    Raises:
        BadInput: for a job that cannot be, or that the site has no room for.
        CheckFailed: if the image has not the signature that it is to have.
        Missing: if a folder for the data is named that is not there.
    """
    job = asked.job
    fix = check_words(asked, flags)
    check_not_there(job)
    program = _program(job)
    code = code_of(job, flags)
    check_ranks(job, code, flags)
    folder = _data(job, tell)
    image = image_facts(asked, flags, tell)
    if image.architecture not in {None, site.architecture}:
        tell.step(f"{job.image} is for {image.architecture}, and {site.title} is {site.architecture}")
    if fix:
        tell_fix(flags, fix, image, tell)
    notes = asked.notes(explain=flags.explain)
    wanted = msgspec.structs.replace(job, data=str(folder)) if folder else job
    made = unseen.write(wanted, site, image, notes, fix=fix, shown=code.facts if code else None)
    tell_idle(job.image or "", made.spec, site, None, image, tell)
    tell.step(f"Nothing was asked of {site.title}: the image has to be brought to {made.spec.image}")
    if code and code.facts.facts:
        tell.step("Submit the script in the folder of the program: the job starts there, as with sbatch")
    if made.data:
        tell.step(f"The data have to be brought to {made.data}{f': all in {folder}' if folder else ''}")
    if program:
        tell.step(f"The program {program} has to be brought to {made.program}")
    if made.spec.secrets:
        tell.step(
            f"The script takes {', '.join(made.spec.secrets)} from {made.spec.directory}/{SECRETS}: "
            "write that file there, with a line export NAME='VALUE' for each, and chmod 600 it"
        )
    return made.script


def check_not_there(job: JobFile) -> None:
    """Refuse what lies on the cluster, which is not asked."""
    if job.env_image:
        raise BadInput(
            f"--env-image {job.env_image}: it is compared with the image there", fix="give --host, too"
        )
    for option, given in (("image", job.image), ("data", job.data)):
        if given and given.startswith(ON_CLUSTER):
            raise BadInput(
                f"--{option} {given}: only the cluster knows it", fix="give --host with --dry-run, too"
            )


def image_facts(asked: JobRequest, flags: Flags, tell: Tell) -> ImageFacts:
    """Return what is known of a job's image by the file if there is one, else by its name.

    Raises:
        BadInput: if it is neither a SIF nor the name of a recipe.
        CheckFailed: if it has not the signature that it is to have.
    """
    given = asked.job.image or ""
    here = image_here(given)
    facts = _read(here, view_of(asked.job, asked.site), tell) if here else _named(given, tell)
    demand = demanded(flags.verify_key, flags.no_verify, asked.key, asked.site, asked.job.site)
    if here or demand.required:
        # Reading an image takes its time, and is for those alone who have one.
        from toolkit.job.request.gate import clear
        from toolkit.job.request.inputs import StartableImage, startable

        clear(startable(StartableImage(Path(facts.path).name, facts, "", here, given)), demand, tell)
    return facts


def _program(job: JobFile) -> Path | None:
    """Return the file of a trainer of one's own, which the job needs there as well."""
    known = trainers.find(job.trainer) if job.trainer else None
    return program_file(job.trainer or "") if known and known.own else None


def _data(job: JobFile, tell: Tell) -> Path | None:
    """Return the folder of a trainer's data; a data set may still have to be fetched, a folder is there.

    Raises:
        BadInput: if a folder is named that is not there.
        Missing: the same, for the data set of a trainer.
    """
    dataset = trainers.find(job.trainer).dataset if job.trainer else ""
    if not job.trainer and job.data:
        tell.step(
            f"The data have to be copied there: {job.data}; name the folder with --env TOOLKIT_DATA=DIR"
        )
    if not job.trainer or not (dataset or job.data):
        return None
    if job.data or (cache_dir() / "data" / dataset).is_dir():
        return data_folder(job.data, dataset)
    tell.step(f"The data set {dataset} is not on this machine yet: toolkit data get {dataset}")
    return None


def _read(file: Path, view: RankView, tell: Tell) -> ImageFacts:
    from toolkit.image.inspect import inspect

    return inspect(file, tell=tell, view=view)


def _named(given: str, tell: Tell) -> ImageFacts:
    """Return what can be said of an image that is not on this machine."""
    if is_path(given):
        tell.step(f"{given} is not on this machine: its MPI is taken to be an Open MPI")
        return ImageFacts(path=given, format="sif")
    if given not in (known := names(_RECIPES, ".toml")):
        raise BadInput(
            f"--image {given}: no SIF file and no recipe{near(given, known)}; recipes: {', '.join(known)}"
        )
    make = f"toolkit image build {given} && toolkit image sif {given} -o build/images/{given}.sif"
    tell.step(f"The image {given} is not built yet: {make}")
    file = find(_RECIPES, given, ".toml")
    raw = tables(text_of(file), str(file))
    wanted = raw.get("want", {})
    mpi = next((name for name in _MPIS if name in wanted), None)
    return ImageFacts(
        path=f"{given}.sif",
        format="sif",
        architecture=raw.get("architecture", "x86_64"),
        mpi=ImageMpi(implementation=mpi, version=None, library="", interfaces=None) if mpi else None,
        cuda=wanted.get("cuda"),
        tensorflow=wanted.get("tensorflow"),
        pytorch=wanted.get("torch"),
        jax=wanted.get("jax"),
        horovod=wanted.get("horovod"),
        stack={"recipe": given, "toolkit": __version__},
        absent={} if mpi else {"mpi": "the recipe has none"},
    )
