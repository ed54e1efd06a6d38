"""Test which programs toolkit finds in the shell scripts of users."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.program.command import read_command
from toolkit.program.shellwords import commands

TORCH = "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
STARTS = (
    ("python train.py", ()),
    ("PY=python3\n$PY train.py", ()),
    ('"${PYTHON:-python}" train.py', ()),
    ('python "$@"', ("train.py", "--epochs", "2")),
    ('python "${1}" --epochs 2', ("train.py",)),
    ("SCRIPT=train.py\nif true; then\n  exec python $SCRIPT\nfi", ()),
    ("for seed in 1 2; do\n  python train.py --seed $seed\ndone", ()),
    ("cd sub && python inner.py", ()),
    ('cd "$(dirname "$0")"\npython train.py', ()),
    ("cd $(dirname ${BASH_SOURCE[0]})\npython train.py", ()),
    ("cat > notes <<'END'\nmpirun x\nEND\npython train.py", ()),
    ("echo 'two\nlines'; python train.py", ()),
    ("train() {\n  python train.py\n}\ntrain", ()),
    ("./again.sh", ()),
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TORCH)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.py").write_text(TORCH)
    (tmp_path / "again.sh").write_text("#!/bin/bash\npython train.py\n")
    return tmp_path


@every_row(("text", "arguments"), STARTS)
@every_row("head", [("bash", "run.sh"), ("./run.sh",), ("sh", "-e", "run.sh")])
def test_the_program_of_a_shell_script_is_read(head, text, arguments, project: Path):
    (project / "run.sh").write_text(f"#!/bin/sh\n{text}\n")
    assert read_command((*head, *arguments), project).joins == {"torch"}


def test_arguments_after_c_are_the_script_and_its_arguments(project: Path):
    assert read_command(("sh", "-c", 'python "$1"', "run", "train.py"), project).joins == {"torch"}


@every_row(
    "text",
    [
        "cat <<END\npython train.py\nEND",
        "cat <<-END\n\tpython train.py\n\tEND",
        "# python train.py",
        "python $UNKNOWN",
        "echo python train.py",
    ],
)
def test_words_that_start_nothing_are_not_read_as_programs(text, project: Path):
    (project / "run.sh").write_text(text)
    found = read_command(("sh", "run.sh"), project)
    assert not found.joins
    assert found.serial is None


@every_row(
    ("text", "exported"),
    [
        ("export MASTER_PORT=29500", {"MASTER_PORT": "29500"}),
        ("MASTER_PORT=29500\nexport MASTER_PORT", {"MASTER_PORT": "29500"}),
        (
            "P=29500; export MASTER_PORT=$P MASTER_ADDR=node1",
            {"MASTER_PORT": "29500", "MASTER_ADDR": "node1"},
        ),
        ("export MASTER_PORT=$(shuf -n1)", {}),
        ("if x; then export MASTER_PORT=29500; fi", {}),
        ("[ x ] && export MASTER_PORT=29500", {}),
        ("MASTER_PORT=29500", {}),
    ],
)
def test_a_shell_script_says_what_it_exports_without_a_condition(text, exported, project: Path):
    (project / "run.sh").write_text(f"{text}\npython train.py\n")
    says = dict(read_command(("sh", "run.sh"), project).says)
    assert {name: value for name, value in says.items() if name.startswith("MASTER_")} == exported


def test_here_documents_end_where_a_shell_ends_them(tmp_path: Path):
    bash = shutil.which("bash")
    assert bash
    text = (
        "cat <<A <<'B'; echo one\n1\nA\n2\nB\necho two\ncat <<-\\C\n\tx\n\t\tC\necho three <<< C\necho four\n"
    )
    said = subprocess.run([bash, "-c", text], capture_output=True, text=True, check=True).stdout
    echoed = [words[1] for _, words in commands(text) if words[:1] == ["echo"]]
    assert echoed == [word for word in said.split() if word in {"one", "two", "three", "four"}]
