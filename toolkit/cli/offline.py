"""``launch --site S --dry-run`` from anywhere: the script for a site, before the image is there."""

import tomllib
from pathlib import Path

from toolkit import __version__
from toolkit.cli.layering import Asked
from toolkit.cli.whereabouts import ON_CLUSTER, check_directory
from toolkit.data import cache_dir, find, names
from toolkit.errors import BadInput
from toolkit.folders import at_home
from toolkit.launch import trainers, unseen
from toolkit.launch.limits import check_limits
from toolkit.launch.specify import name_of
from toolkit.model.facts import ImageFacts, ImageMpi
from toolkit.model.progress import Tell
from toolkit.model.site import Site

_RECIPES = "recipes"


def script_for(asked: Asked, site: Site, tell: Tell, *, explain: bool) -> str:
    """Return the script of a job for a site that is not asked anything.

    Raises:
        BadInput: for a job that cannot be, or that the site has no room for.
    """
    job = asked.job
    name_of(job)
    for option, given in (("image", job.image), ("data", job.data)):
        if given and given.startswith(ON_CLUSTER):
            raise BadInput(
                f"--{option} {given}: only the cluster knows it", fix="give --host with --dry-run, too"
            )
    dataset = trainers.find(job.trainer).dataset if job.trainer else ""
    if dataset and not _has_data(job.data, dataset):
        tell.step(f"The data set {dataset} is not on this machine yet: toolkit data get {dataset}")
    # Of a folder of its own the profile may say $NAME; whoever gives another one has to mean a folder.
    check_directory(job.directory or "")
    image = _image(job.image or "", tell)
    if image.architecture not in {None, site.architecture}:
        tell.step(f"{job.image} is for {image.architecture}, and {site.title} is {site.architecture}")
    made = unseen.write(job, site, image, asked.explained() if explain else ())
    check_limits(made.spec, site, job.site or "")
    tell.step(f"Nothing was asked of {site.title}: the image has to be brought to {made.spec.image}")
    return made.script


def _image(given: str, tell: Tell) -> ImageFacts:
    """Return what is known of an image by its name, or by the file if there is one.

    Raises:
        BadInput: if it is neither a SIF nor the name of a recipe.
    """
    file = at_home(given)
    if file.is_file():
        # Reading an image takes its time, and is for those alone who name one.
        from toolkit.image.inspect import inspect

        return inspect(file)
    if "/" in given or given.endswith(".sif"):
        tell.step(f"{given} is not on this machine: its MPI is taken to be an Open MPI")
        return ImageFacts(path=given, format="sif")
    if given not in (known := names(_RECIPES, ".toml")):
        raise BadInput(f"--image {given}: no SIF file and no recipe; recipes: {', '.join(known)}")
    if not any((folder / f"{given}.sif").is_file() for folder in (Path("build/images"), Path("images"))):
        make = f"toolkit image build {given} && toolkit image sif {given} -o build/images/{given}.sif"
        tell.step(f"The image {given} is not built yet: {make}")
    raw = tomllib.loads(find(_RECIPES, given, ".toml").read_text("utf-8"))
    mpi = next((name for name in ("mpich", "intelmpi") if name in raw.get("want", {})), "openmpi")
    return ImageFacts(
        path=f"{given}.sif",
        format="sif",
        architecture=raw.get("architecture", "x86_64"),
        mpi=ImageMpi(implementation=mpi, version=None, library="", interfaces=None),
        stack={"recipe": given, "toolkit": __version__},
    )


def _has_data(given: str | None, dataset: str) -> bool:
    return (at_home(given) if given else cache_dir() / "data" / dataset).is_dir()
