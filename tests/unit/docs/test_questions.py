"""Test that the answer to each common question is at most two clicks from the site's home page."""

import re
from pathlib import PurePosixPath
from posixpath import normpath

import yaml

from docs.generate.outside import ROOT
from tests.unit.tables import every_row

DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\(([^()\s#]+\.md)?(?:#[\w-]+)?\)")
QUESTIONS = [
    ("install without root", "install.md", "pipx install"),
    ("remove it again", "install.md", "uninstall"),
    ("first job on a cluster", "howto/real-cluster.md", "toolkit launch"),
    ("try it without a cluster", "tutorial.md", "toolkit cluster up"),
    ("run my own script", "howto/own-script.md", "toolkit launch --image my.sif train.py"),
    ("several modules in a project folder", "howto/own-script.md", "folder"),
    ("PyTorch DDP", "howto/pytorch.md", "DDP"),
    ("torchrun", "howto/pytorch.md", "torchrun"),
    ("JAX", "howto/pytorch.md", "jax.distributed"),
    ("an image from a colleague", "howto/own-image.md", "toolkit doctor"),
    ("my own Python packages", "howto/own-packages.md", "toolkit env create"),
    ("an image with my packages", "howto/own-image.md", "packages ="),
    ("a SIF without Docker", "howto/own-image.md", "apptainer build torch.sif"),
    ("releases of Open MPI", "explanation/hybrid-bind-pmi.md", "need not have the same release"),
    ("podman", "runtimes.md", "podman"),
    ("one rank for each GPU", "howto/gpu-cluster.md", "--gpus-per-node"),
    ("NCCL over the fast network", "howto/gpu-cluster.md", "NCCL"),
    ("nodes without a network", "howto/no-network.md", "toolkit image bundle"),
    ("NCCL hangs", "howto/nccl-trouble.md", "NCCL_SOCKET_IFNAME"),
    ("MPI hangs", "howto/mpi-trouble.md", "hang"),
    ("why my job failed", "howto/job-failed.md", "toolkit explain 123"),
    ("a full home folder", "install.md", "TOOLKIT_CACHE_DIR"),
    ("a login node without network and Docker", "howto/no-network.md", "image bundle -o"),
    ("a full /tmp", "install.md", "APPTAINER_TMPDIR"),
    ("the MPI of an image for a cluster", "solve.md", "Slurm lacks PMIx"),
    ("the driver that a CUDA needs", "howto/gpu-cluster.md", "| 525.60.13 |"),
    ("Ctrl-C and a closed terminal", "jobs.md", "SIGHUP"),
    ("a preempted job", "survive.md", "PREEMPTED"),
    ("an image of NGC or Docker Hub", "howto/own-image.md", "docker://nvcr.io"),
    ("results back", "howto/own-script.md", "toolkit jobs fetch"),
    ("cancel a job", "jobs.md", "toolkit jobs cancel"),
    ("cancel all jobs", "jobs.md", "--state running"),
    ("TensorBoard", "howto/own-script.md", "tensorboard --logdir"),
    ("a variable for all ranks", "howto/own-script.md", "--env NCCL_DEBUG=INFO"),
    ("account and partition for all jobs", "job-file.md", "partition ="),
    ("killed for memory", "howto/own-script.md", "--memory"),
    ("an exit status", "reference/index.md", "| 3 |"),
    ("a sweep", "howto/sweeps.md", "--sweep"),
    ("resume after the time limit", "howto/own-script.md", "--requeue"),
    ("notebook", "notebook.md", "toolkit notebook"),
    ("a token", "secrets.md", "--env-file"),
    ("how it scales", "scaling.md", "toolkit scale"),
    ("how fast it is beside a known figure", "howto/compare-speed.md", "images/s"),
    ("a site profile", "howto/own-site.md", "toolkit init"),
    ("the login of a registry", "moving.md", "docker login"),
    ("a ticket", "howto/ticket.md", "toolkit doctor --ask"),
    ("help without names of machines", "howto/ticket.md", "toolkit site share"),
    ("hide a finding from all users", "howto/own-site.md", "[silence]"),
    ("a class", "classroom.md", "--users"),
    ("sign an image", "supply-chain.md", "toolkit image sign"),
    ("from Python", "api.md", "from toolkit import app"),
]
"""Questions, each with the page that has its answer, and a text of the answer."""


def links(page):
    folder = PurePosixPath(page).parent
    found = (match[1] for match in _LINK.finditer((DOCS / page).read_text()) if match[1])
    return {normpath(folder / target) for target in found if "://" not in target}


def tabs():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    return {first(section) for section in nav} - {"courses/"}


def first(entry):
    while not isinstance(entry, str):
        entry = next(iter(entry.values())) if isinstance(entry, dict) else entry[0]
    return entry


def reached(clicks):
    pages = {"index.md"}
    for _ in range(clicks):
        pages |= tabs() | {target for page in pages if (DOCS / page).is_file() for target in links(page)}
    return pages


@every_row(("question", "page", "text"), QUESTIONS)
def test_an_answer_is_at_most_two_clicks_from_home(question, page, text):
    assert page in reached(2), question
    assert text in (DOCS / page).read_text(), question


def test_a_page_that_nothing_links_to_is_not_reached():
    assert "writing.md" not in reached(2)
    assert len(QUESTIONS) >= 25


def test_every_question_of_the_guide_has_one_answer():
    table = (DOCS / "howto" / "index.md").read_text().partition("## Find an answer")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "?" in line]
    assert len(rows) >= 25
    assert all(len(re.findall(r"\]\([^)]+\.md", row)) == 1 for row in rows)
