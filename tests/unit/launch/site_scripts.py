"""A job script for each shipped site, in tests/golden/scripts.

python -m tests.unit.launch.site_scripts     writes the scripts again; review them before you commit them
"""

from pathlib import Path

from toolkit import __version__
from toolkit.data import shipped_folder
from toolkit.knowledge import sites
from toolkit.launch import from_profile
from toolkit.launch.request import layers
from toolkit.launch.request.complete import complete_job
from toolkit.launch.request.layers import JobLayer
from toolkit.model.facts import ImageFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.site import Site

FOLDER = Path(__file__).parents[2] / "golden" / "scripts"
JOBS = {
    "juwels": JobFile(partition="gpus", gpus_per_node=4, ranks_per_node=4, account="train"),
    "juwels-booster": JobFile(gpus_per_node=4, ranks_per_node=4, account="train", requeue=True),
    "jureca": JobFile(ranks_per_node=2, account="train", chain=3),
    "cte-power": JobFile(gpus_per_node=4, ranks_per_node=4, cpus_per_rank=40),
    "cori-knl": JobFile(ranks_per_node=4, cpus_per_rank=16),
    "piz-daint": JobFile(gpus_per_node=1, cpus_per_rank=12, account="train"),
    "davide": JobFile(gpus_per_node=4, ranks_per_node=4),
    "polaris": JobFile(account="train", ranks_per_node=4, cpus_per_rank=8),
    "aurora": JobFile(account="train", ranks_per_node=6, cpus_per_rank=8),
    "lumi-g": JobFile(gpus_per_node=8, ranks_per_node=8, cpus_per_rank=7, account="train"),
    "lumi-c": JobFile(ranks_per_node=8, cpus_per_rank=16, account="train"),
    "archer2": JobFile(ranks_per_node=8, cpus_per_rank=16, account="train"),
    "frontier": JobFile(gpus_per_node=8, ranks_per_node=8, cpus_per_rank=7, account="train"),
    "jupiter": JobFile(gpus_per_node=4, ranks_per_node=4, cpus_per_rank=72, account="train"),
    "roihu-cpu": JobFile(ranks_per_node=8, cpus_per_rank=48, account="train"),
    "roihu-gpu": JobFile(gpus_per_node=4, ranks_per_node=4, cpus_per_rank=72, account="train"),
    "daint": JobFile(gpus_per_node=4, ranks_per_node=4, cpus_per_rank=72, account="train"),
    "isambard-ai": JobFile(gpus_per_node=4, ranks_per_node=4, cpus_per_rank=72),
    "vista": JobFile(partition="gh", account="train"),
    "setonix": JobFile(ranks_per_node=8, cpus_per_rank=16, account="train"),
    "leonardo": JobFile(gpus_per_node=4, ranks_per_node=4, cpus_per_rank=8, account="train"),
    "snellius": JobFile(partition="gpu_h100", gpus_per_node=4, ranks_per_node=4, cpus_per_rank=16),
    "karolina": JobFile(
        partition="qgpu", gpus_per_node=8, ranks_per_node=8, cpus_per_rank=16, account="train"
    ),
    "levante": JobFile(ranks_per_node=8, cpus_per_rank=16, account="train"),
    "perlmutter": JobFile(gpus_per_node=4, ranks_per_node=4, account="train_g"),
    "marenostrum5": JobFile(gpus_per_node=4, ranks_per_node=4, cpus_per_rank=20, account="train"),
}
"""Options of each site's job, which also trains MNIST on two nodes."""

IMAGE = ImageFacts(
    path="tf2.15-cpu.sif",
    format="sif",
    mpi=ImageMpi(implementation="openmpi", version=None, library="", interfaces=None),
    stack={"toolkit": "0.2.0"},
)


def names() -> list[str]:
    return sorted(f.stem for f in (shipped_folder("slurm") / "sites").rglob("*.toml") if f.stem != "example")


def site_of(name: str) -> Site:
    return sites.site(str(next((shipped_folder("slurm") / "sites").rglob(f"{name}.toml"))))


def made(name: str, asked: JobFile | None = None) -> str:
    """Return the job script for a site; ``asked`` replaces the site's options in ``JOBS``."""
    site = site_of(name)
    base = JobFile(trainer="mnist", nodes=2, site=name)
    below = [JobLayer("default", layers.DEFAULTS), layers.of_site(name, site)]
    said = [JobLayer(layers.OPTION, one) for one in (base, asked or JOBS.get(name, JobFile()))]
    job = complete_job(layers.merge([*below, *said]), site).job
    return from_profile.write(job, site, IMAGE, key="mnist-1").script.replace(
        f"toolkit {__version__}.", "toolkit."
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for site_name in names():
        (FOLDER / f"{site_name}.sh").write_text(made(site_name))
