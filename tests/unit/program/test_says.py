"""Test how toolkit finds the ranks' rendezvous address in the command and the script."""

from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.job.diagnosis import LaunchQuestion, request_launch
from toolkit.job.request.layering import merge_request
from toolkit.model.prediction import Request
from toolkit.model.progress import Silent
from toolkit.program.choose import starter_of
from toolkit.program.command import read_command
from toolkit.program.script.read import read_text
from toolkit.program.starter_counts import read_starter_counts

TORCH = "import os\nimport torch.distributed as dist\n"


@every_row(
    ("text", "says"),
    [
        ("os.environ['MASTER_ADDR'] = 'localhost'", {"MASTER_ADDR": "localhost"}),
        ("os.environ['MASTER_PORT'] = str(port)", {}),
        ("os.environ['HOME'] = '/tmp'", {}),
        ("os.environ.setdefault('MASTER_ADDR', 'localhost')", {}),
        ("os.environ.update({'RANK': '0'}, WORLD_SIZE='1')", {"RANK": "0", "WORLD_SIZE": "1"}),
        ("if alone:\n    os.environ['MASTER_ADDR'] = 'localhost'", {}),
        ("try:\n    dist.init_process_group(init_method='tcp://a:1')\nexcept OSError:\n    pass", {}),
        ("if __name__ == '__main__':\n    os.environ['RANK'] = '0'", {"RANK": "0"}),
        ("def main():\n    os.environ['RANK'] = '0'", {"RANK": "0"}),
        ("dist.init_process_group('gloo', 'tcp://a:1')", {"init_method": "tcp://a:1"}),
        ("dist.init_process_group('gloo', rank=r, world_size=2)", {"rank": "$", "world_size": "2"}),
        ("dist.init_process_group('gloo', None)", {}),
        ("import torch.multiprocessing as mp\nmp.spawn(f, nprocs=4)", {"spawn": "$", "spawn_nprocs": "4"}),
        (
            "import jax\njax.distributed.initialize(a, 2)",
            {"coordinator_address": "$", "num_processes": "2"},
        ),
        ("import jax\njax.distributed.initialize()", {}),
    ],
)
def test_a_script_says_what_it_sets_without_a_condition(text: str, says: dict[str, str]):
    assert dict(read_text(TORCH + text).says) == says


@every_row(
    ("words", "says"),
    [
        (("torchrun", "--nnodes=2", "--nproc_per_node", "4", "a.py"), ("2", "4")),
        (("python", "-m", "torch.distributed.run", "--nnodes", "1:3", "a.py"), ("1:3", None)),
        (("torchrun", "--no-python", "--nnodes=$N", "a.py", "--nnodes=3"), (None, None)),
        (("torchrun", "a.py", "--nproc-per-node=8"), (None, None)),
        (("accelerate", "launch", "--nnodes=2", "a.py"), (None, None)),
    ],
)
def test_options_of_torchrun_are_read_up_to_its_script(words, says, tmp_path):
    found = dict(read_command(words, tmp_path).says)
    assert (found.get("PET_NNODES"), found.get("PET_NPROC_PER_NODE")) == says


def test_an_option_without_a_value_says_that_it_is_given(tmp_path):
    assert dict(read_command(("torchrun", "--standalone", "a.py"), tmp_path).says) == {"PET_STANDALONE": "1"}


@every_row(
    ("line", "script", "modules"),
    [
        ("torchrun --nnodes=2 --rdzv-backend c10d net.py --lr 1", 4, {"einops"}),
        ("python -m torch.distributed.run --standalone net.py", 4, {"einops"}),
        ("accelerate launch --config_file conf.yaml net.py", 4, {"einops"}),
        ("deepspeed --num_gpus 2 net.py --deepspeed", 3, {"einops"}),
        ("torchrun --nproc-per-node=2 gone.py", 2, set()),
        ("torchrun -m net", None, set()),
    ],
)
def test_the_script_of_a_starter_is_read(tmp_path, line, script, modules):
    (tmp_path / "net.py").write_text("import einops\n")
    found = read_command(line.split(), tmp_path)
    assert found.script == script
    assert {name for facts in found.facts for name in facts.packages} == modules
    assert found.serial is False


@every_row(
    ("line", "nodes", "ranks"),
    [
        ("torchrun --nnodes=2 --nproc-per-node 4 a.py", 2, 4),
        ("torchrun --nnodes=1:4 --nproc_per_node=gpu a.py", None, None),
        ("torchrun --standalone --nproc-per-node=4 a.py", None, None),
        ("torchrun --nnodes=0 --nproc-per-node=-1 a.py", None, None),
        ("python a.py --nnodes=2", None, None),
        ("accelerate launch --num_processes 6 --num-machines=3 a.py", 3, 2),
        ("python -m accelerate.commands.launch --mixed_precision bf16 --num_processes 4 a.py", None, 4),
        ("accelerate launch --num_processes 5 --num_machines 2 a.py", 2, None),
        ("accelerate launch a.py --num_processes 4", None, None),
        ("deepspeed --num_gpus=4 --num_nodes 2 a.py --num_gpus 8", 2, 4),
        ("bash run.sh", None, 2),
    ],
)
def test_torchrun_gives_the_size_of_the_job(tmp_path, monkeypatch, line, nodes, ranks):
    (tmp_path / "run.sh").write_text(SHELL)
    counts = read_starter_counts(dict(read_command(line.split(), tmp_path).says), 1)
    assert counts == (nodes, ranks)
    monkeypatch.chdir(tmp_path)
    merged = merge_request({}, tuple(line.split()))
    assert (merged.job.nodes, merged.job.ranks_per_node) == (nodes or 1, ranks or 1)
    given = merge_request({"nodes": 3, "ranks_per_node": 5}, tuple(line.split()))
    assert (given.job.nodes, given.job.ranks_per_node) == (3, 5)
    asked = request_launch(LaunchQuestion(image="x.sif", command=tuple(line.split())), Silent())
    assert asked.request.nodes == (nodes or 2)
    assert asked.request.nodes * asked.request.ranks_per_node in {(nodes or 2) * (ranks or 1), 4}


SHELL = """#!/bin/sh
export MASTER_ADDR='localhost'
export MASTER_PORT=$((10000 + RANDOM))
torchrun --nproc-per-node=2 train.py
"""


def test_a_shell_script_that_calls_torchrun_is_started_once_a_node(tmp_path: Path):
    (tmp_path / "run.sh").write_text(SHELL)
    found = read_command(("bash", "run.sh"), tmp_path)
    says = {"MASTER_ADDR": "localhost", "PET_NPROC_PER_NODE": "2", "starter": "torchrun"}
    assert dict(found.says) == says
    request = Request(command=("bash", "run.sh"), joins=found.joins, says=says)
    assert starter_of("torch", request) == "torchrun"
    assert starter_of("jax", request) == ""


def test_a_python_script_that_reads_what_torchrun_sets_starts_no_torchrun(tmp_path: Path):
    (tmp_path / "train.py").write_text(f"{TORCH}print(os.environ['LOCAL_RANK'])\n")
    (tmp_path / "run.sh").write_text("python train.py\n")
    found = read_command(("sh", "run.sh"), tmp_path)
    assert "torchrun" in found.joins
    assert starter_of("torch", Request(command=("sh", "run.sh"), says=dict(found.says))) == ""


def test_the_file_that_is_imported_says_less_than_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("peers.py").write_text("import os\nos.environ['RANK'] = '3'\nos.environ['WORLD_SIZE'] = '4'\n")
    Path("train.py").write_text(f"{TORCH}import peers\nos.environ['RANK'] = '0'\n")
    assert dict(read_command(("python", "train.py"), tmp_path).says) == {"RANK": "0", "WORLD_SIZE": "4"}


def test_what_is_said_reaches_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from toolkit.job.diagnosis import LaunchQuestion, request_launch
    from toolkit.model.progress import Silent

    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(f"{TORCH}os.environ['MASTER_ADDR'] = 'localhost'\n")
    question = LaunchQuestion(image="x.sif", nodes=2, ranks_per_node=1, command=("python", "train.py"))
    found = request_launch(question, Silent())
    assert found.request.says == {"MASTER_ADDR": "localhost"}
