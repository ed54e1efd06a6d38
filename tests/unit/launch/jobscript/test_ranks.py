"""Test with real shells how ``toolkit-ranks.sh`` sets each rank's number and peers."""

import json
import os
import subprocess
from pathlib import Path

import msgspec

from tests.unit.launch.examples import SPEC, job_script
from tests.unit.tables import every_row
from toolkit.launch.jobscript.plan import launch_words
from toolkit.model.prediction import Plan, ProgramName, Starter

SLURM = {"SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "gpu[7-8]"}
RANK = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NODEID": "1"}


def plan_of(program: ProgramName, starter: Starter = "") -> Plan:
    wrapper = ("sh", "toolkit-ranks.sh")
    return Plan(
        mode="torch", launcher=("srun", "--mpi=none"), wrapper=wrapper, program=program, starter=starter
    )


def told(folder: Path, plan: Plan, command: str = "env", **variables: str) -> tuple[dict[str, str], str]:
    """Write ``toolkit-ranks.sh`` as a job does, and run it as rank 3 of 4; return the command's variables and
    output.
    """
    spec = msgspec.structs.replace(SPEC, directory=str(folder), ranks_per_node=2)
    text = job_script(spec, plan, "why")
    part = text[text.index("find_peers() {") : text.index("\n}\n\n", text.index("find_peers() {")) + 3]
    (folder / "bin").mkdir(exist_ok=True)
    for name, lines in {"scontrol": "printf 'gpu7\\ngpu8\\n'", "getent": ":"}.items():
        tool = folder / "bin" / name
        tool.write_text(f"#!/bin/sh\n{lines}\n")
        tool.chmod(0o755)
    path = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    made = subprocess.run(
        ["bash", "-c", f"set -u; {part} find_peers"], cwd=folder, env=path | SLURM | variables
    )
    assert made.returncode == 0
    run = subprocess.run(
        ["sh", str(folder / "toolkit-ranks.sh"), *command.split()],
        env=path | RANK | variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pairs = (line.partition("=") for line in run.stdout.splitlines() if "=" in line)
    return {name: value for name, _, value in pairs}, run.stdout


def test_pytorch_is_told_the_first_node_and_its_place(tmp_path):
    found, _ = told(tmp_path, plan_of("torch"))
    assert found["MASTER_ADDR"] == "gpu7"
    assert 16384 <= int(found["MASTER_PORT"]) < 32768
    place = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "NODE_RANK": "1"}
    assert {name: found[name] for name in place} == place


def test_a_script_that_reads_slurms_variables_gets_its_number_from_mpirun(tmp_path):
    plan = msgspec.structs.replace(plan_of("torch"), mode="mpirun-host", launcher=("mpirun",))
    daemon = {"SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2"}
    number = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    found, _ = told(tmp_path, plan, **daemon, **number, SLURM_JOB_ID="77")
    rank = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_NTASKS": "4"}
    assert {name: found[name] for name in (*rank, "RANK")} == {**rank, "RANK": "3"}
    found, _ = told(tmp_path, plan, **daemon, **number, SLURM_JOB_ID="")
    assert (found["SLURM_PROCID"], found["RANK"]) == ("1", "3")


def test_jobs_have_ports_of_their_own(tmp_path):
    ports = {told(tmp_path, plan_of("torch"), SLURM_JOB_ID=str(n))[0]["MASTER_PORT"] for n in range(70, 75)}
    assert len(ports) == 5


def test_jax_is_told_its_coordinator(tmp_path):
    found, _ = told(tmp_path, plan_of("jax"))
    assert found["JAX_COORDINATOR_ADDRESS"].startswith("gpu7:")
    assert (found["JAX_NUM_PROCESSES"], found["JAX_PROCESS_ID"]) == ("4", "3")
    assert (found["LOCAL_RANK"], found["LOCAL_WORLD_SIZE"]) == ("1", "2")


def test_tensorflow_is_told_every_worker(tmp_path):
    config = json.loads(told(tmp_path, plan_of("tf-config"))[0]["TF_CONFIG"])
    workers = config["cluster"]["worker"]
    assert [worker.partition(":")[0] for worker in workers] == ["gpu7", "gpu7", "gpu8", "gpu8"]
    assert len(set(workers)) == 4
    assert config["task"] == {"type": "worker", "index": 3}


@every_row(("node", "host"), [("0", "is_host=1"), ("1", "is_host=0")])
def test_torchrun_is_told_what_its_command_leaves_out(tmp_path, node, host):
    found, _ = told(tmp_path, plan_of("torch", "torchrun"), SLURM_NODEID=node)
    assert (found["PET_NNODES"], found["PET_NPROC_PER_NODE"], found["PET_NODE_RANK"]) == ("2", "2", node)
    assert found["PET_RDZV_ENDPOINT"] == f"gpu7:{found['PET_MASTER_PORT']}"
    assert (found["PET_RDZV_BACKEND"], found["PET_RDZV_CONF"]) == ("c10d", host)


@every_row(
    ("starter", "command", "begins"),
    [
        (
            "accelerate",
            "accelerate launch a.py",
            "launch --num_machines 2 --machine_rank 1 --main_process_ip gpu7",
        ),
        (
            "accelerate",
            "accelerate-launch a.py",
            "launch --num_machines 2 --machine_rank 1 --main_process_ip gpu7",
        ),
        *[
            ("accelerate", f"accelerate launch {words} a.py", "launch --num_machines 2 --machine_rank 1")
            for words in ("--use_fsdp", "--config_file=x.yaml", "--multi-gpu", "--mixed_precision bf16")
        ],
        (
            "accelerate",
            "python -u -m accelerate.commands.launch a.py",
            "launch --num_machines 2 --machine_rank 1 --main_process_ip gpu7",
        ),
        ("deepspeed", "python -m deepspeed.launcher.runner a.py", "--hostfile {}/hostfile --no_ssh"),
        ("deepspeed", "deepspeed a.py", "--hostfile {}/hostfile --no_ssh --node_rank 1 --master_addr gpu7"),
    ],
)
def test_options_are_added_in_front_of_those_of_the_command(tmp_path, starter, command, begins):
    tool = tmp_path / "bin" / starter
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "$@"\n')
    tool.chmod(0o755)
    _, out = told(tmp_path, plan_of("torch", starter), command)
    assert out.startswith(begins.format(tmp_path))
    assert out.endswith(" a.py\n")
    if starter == "accelerate":
        chosen = any(word in command for word in ("fsdp", "config", "multi"))
        assert ("--multi_gpu" in out) is not chosen
    if starter == "deepspeed":
        assert (tmp_path / "hostfile").read_text() == "gpu7 slots=2\ngpu8 slots=2\n"


def test_a_starter_is_started_once_a_node_with_the_cores_of_its_ranks():
    spec = msgspec.structs.replace(SPEC, ranks_per_node=4, cpus_per_rank=3)
    launcher = launch_words(spec, plan_of("torch", "torchrun"), ("torchrun", "a.py"))[0]
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=12"} <= set(launcher)


def test_variables_of_the_user_win():
    spec = msgspec.structs.replace(SPEC, env={"MASTER_PORT": "5"}, ranks_per_node=2)
    words = [word for group in launch_words(spec, plan_of("torch"), ("python", "a.py")) for word in group]
    ranks = words.index(f"{spec.directory}/toolkit-ranks.sh")
    assert ranks < words.index(f"{spec.directory}/variables.sh") < words.index("python")


def test_a_program_without_mpi_has_no_preflight_that_asks_mpi():
    text = job_script(SPEC, plan_of("torch"), "why")
    assert "toolkit-peers.py torch --tasks" in text
    assert "toolkit.trainers.preflight" not in text
    assert "toolkit-peers.py" not in job_script(SPEC, plan_of("torch", "deepspeed"), "why")
