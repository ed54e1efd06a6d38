"""The job scripts in tests/golden, and fake programs to run a script without Slurm.

python -m tests.unit.launch.scripts     writes the scripts again; review them before you commit them
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.unit.launch.examples import (
    ACROSS,
    BIND,
    CARRIED,
    CONTAINED,
    GLOO,
    MPIRUN,
    NO_IMAGE,
    PODMAN,
    SPEC,
    SRUN,
    TORCH,
    job_script,
    spec,
)
from toolkit import __version__
from toolkit.knowledge import sites
from toolkit.launch import notebook
from toolkit.model.site import Site
from toolkit.runtime import runtime_of_name

GOLDEN = Path(__file__).parents[2] / "golden"
DESCRIBED = {
    "ch-run": "sqfs",
    "enroot": "sqsh",
    "ce": "sqsh",
    "pyxis": "sqsh",
    "podman-hpc": "tar",
    "shifter": "tar",
    "sarus": "tar",
}
"""Runtimes whose scripts the project never ran, with the file name extension of their images."""
BECAUSE = "Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7"

EVERYTHING = spec(
    ranks_per_node=4,
    cpus_per_rank=12,
    gpus_per_node=4,
    gpu="v100",
    gpu_bind="closest",
    cpu_bind="sockets",
    memory="180G",
    tmp="200G",
    time="1-00:00:00",
    partition="gpus,develgpus",
    account="train",
    wckey="lab",
    qos="high",
    constraint="ib&mem192",
    reservation="course",
    nodelist="node[1-4]",
    exclude="node3",
    licenses="scratch:1",
    switches="1@02:00:00",
    mail_type="END,FAIL",
    mail_user="ada@example.org",
    array="0-7%2",
    dependency="afterok:12:13",
    begin="now+2hours",
    exclusive=True,
    requeue=True,
    warning=300,
    chain=5,
    output="output-%a.log",
    error="error-%a.log",
    workdir="/work/ada",
    modules=("GCC/12.3.0", "swap cray-mpich cray-mpich-abi"),
    sbatch=("--comment='a b'", "--switches=1"),
    trainer="mnist",
)
"""A job with a value in every field."""

ENV = "/work/ada/my.env"
ENV_BIND = f"{ENV}:/opt/toolkit-env:image-src=/,ro"
WITH_ENV = msgspec.structs.replace(SRUN, binds=(*SPEC.binds, ENV_BIND))

CASES = {
    "job-srun-pmix.sh": (spec(cpus_per_rank=4, partition="gpu", account="train"), SRUN),
    "job-mpirun-host.sh": (spec(preflight=False), MPIRUN),
    "job-mpirun-container.sh": (spec(nodes=1, ranks_per_node=2), CONTAINED),
    "job-mpirun-nodes.sh": (spec(ranks_per_node=2), ACROSS),
    "job-gloo.sh": (spec(ranks_per_node=2), GLOO),
    "job-torch.sh": (spec(ranks_per_node=2, command=("python", "train.py")), TORCH),
    "job-bind.sh": (SPEC, BIND),
    "job-stops.sh": (spec(trainer="mnist", warning=120), SRUN),
    "job-elastic.sh": (
        spec(
            nodes=4, ranks_per_node=2, trainer="mnist", elastic=True, min_nodes=2, requeue=True, warning=120
        ),
        SRUN,
    ),
    "job-everything.sh": (EVERYTHING, SRUN),
    "job-variables.sh": (spec(env={"MESSAGE": "$HOME is 'here'"}, secrets=("WANDB_API_KEY",)), SRUN),
    "job-variables-array.sh": (spec(array="0-7", secrets=("WANDB_API_KEY", "HF_TOKEN")), GLOO),
    "job-sweep.sh": (
        spec(
            command=("python", "train.py", "--lr", "{lr}", "--name={note}-{lr}"),
            sweep=("lr=0.1,1e-3", 'note=plain,"it\'s $(id), 50%"'),
            array="0-3%2",
            output="output-%a.log",
        ),
        GLOO,
    ),
    "job-carried.sh": (spec(ranks_per_node=2), CARRIED),
    "job-deepspeed.sh": (
        spec(ranks_per_node=2, command=("deepspeed", "train.py")),
        msgspec.structs.replace(TORCH, starter="deepspeed"),
    ),
    "job-elastic-torch.sh": (
        spec(nodes=4, ranks_per_node=2, trainer="mnist", elastic=True, min_nodes=2, requeue=True),
        TORCH,
    ),
    "job-broadcast.sh": (spec(env_image=ENV, binds=(*SPEC.binds, ENV_BIND), broadcast="on"), WITH_ENV),
    "job-project.sh": (spec(project="/work/ada/toolkit/projects/my.tar", modules=("GCC/12.3.0",)), SRUN),
    "job-pbs-podman.sh": (spec(ranks_per_node=2, runtime="podman"), GLOO),
    "job-podman.sh": (
        msgspec.structs.replace(SPEC, image="/work/ada/toolkit/images/my-0123456789ab.tar", runtime="podman"),
        PODMAN,
    ),
    **{
        f"job-{name}.sh": (
            msgspec.structs.replace(SPEC, image=f"/work/ada/images/my.{end}", runtime=name, preflight=False),
            msgspec.structs.replace(
                SRUN,
                container=(
                    *runtime_of_name(name).standard(NO_IMAGE, None),
                    *runtime_of_name(name).workdir(SPEC.directory),
                ),
                unset=("OMPI_MCA_btl",),
            ),
        )
        for name, end in DESCRIBED.items()
    },
}
MORE: dict[str, dict[str, Any]] = {
    "job-broadcast.sh": {
        "copies": {SPEC.image: (f"sha256:{'ab' * 32}", 1000), ENV: (f"sha256:{'cd' * 32}", 5)},
        "notes": ["The image is copied to the nodes."],
    },
    "job-project.sh": {"site": Site(schema="site/1", title="a site", purge=True)},
    "job-pbs-podman.sh": {"site": sites.site("polaris"), "notes": ["PBS starts this script."]},
}
"""Additional arguments of ``job_script`` for some cases."""

RELAY = "relay.sh"
"""The program that a notebook's SSH tunnel starts on the node of the job."""

__all__ = ["CARRIED", "CASES", "EVERYTHING", "GOLDEN", "made", "run"]

_STAND_IN = """#!/bin/bash
printf '%s\\0' "$(($# + 1))" "${0##*/}" "$@" >> "$RECORDED"
case "${0##*/}" in
    squeue) echo RUNNING ;;
    scontrol) echo n ;;
    srun) echo "srun exports ${SLURM_EXPORT_ENV-all}" ;;
esac
exit "${ENDS:-0}"
"""
PROGRAMS = ("srun", "singularity", "mpirun", "mpiexec", "sbatch", "squeue", "scontrol")


@dataclass(frozen=True)
class Ran:
    """The exit status of a script, and the command lines of all programs that it called."""

    status: int
    calls: list[list[str]]
    said: str


def made(name: str) -> str:
    case, plan = CASES[name]
    runtime = case.runtime or "singularity"
    script = job_script(case, plan, BECAUSE, runtime, **MORE.get(name, {}))
    return script.replace(f"toolkit {__version__}.", "toolkit.")


def relay() -> str:
    return notebook.files(SPEC, "apptainer")[RELAY].decode()


def run(script: str, folder: Path, *, ends: int = 0, **environment: str) -> Ran:
    """Run a script with bash in ``folder``, with fake programs for everything that it calls."""
    programs, recorded = folder / "bin", folder / "recorded"
    programs.mkdir(exist_ok=True)
    for program in PROGRAMS:
        (programs / program).write_text(_STAND_IN)
        (programs / program).chmod(0o755)
    recorded.write_bytes(b"")
    file = folder / "job.sh"
    file.write_text(script, newline="")
    done = subprocess.run(
        ["bash", file],
        cwd=folder,
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "SLURM_JOB_ID": "1",
            "SLURM_NTASKS": "1",
            "SLURM_JOB_NODELIST": "n",
            "SLURM_JOB_NUM_NODES": "1",
            "RECORDED": str(recorded),
            "ENDS": str(ends),
            **environment,
        },
        capture_output=True,
        timeout=60,
    )
    return Ran(
        done.returncode, _calls(recorded.read_bytes()), (done.stdout + done.stderr).decode(errors="replace")
    )


def given_to(folder: Path, name: str) -> str:
    """Return the value that the job's file ``variables.sh`` sets for a variable."""
    words = ["sh", folder / "variables.sh", "sh", "-c", f'printf "%s" "${name}"']
    return subprocess.run(words, check=True, capture_output=True, env={}, timeout=20).stdout.decode()


def _calls(recorded: bytes) -> list[list[str]]:
    """Return the recorded calls of the fake programs; each record begins with its number of words."""
    words, calls = recorded.decode().split("\0")[:-1], []
    while words:
        count = int(words[0])
        calls.append(words[1 : count + 1])
        words = words[count + 1 :]
    return calls


if __name__ == "__main__":
    for name in CASES:
        (GOLDEN / name).write_text(made(name))
    (GOLDEN / RELAY).write_text(relay())
