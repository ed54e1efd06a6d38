"""Test where the ranks' variables come from, and that no argument or record contains a secret value."""

import os
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.unit.engine.whole import HOST, IMAGE
from tests.unit.launch.examples import (
    ACROSS,
    CARRIED,
    CONTAINED,
    GLOO,
    MPIRUN,
    RECORD,
    SRUN,
    job_script,
    spec,
)
from tests.unit.launch.scripts import run
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.errors import BadInput
from toolkit.launch.request import variables
from toolkit.launch.tracking.submission import hand_over
from toolkit.model.hidden import Hidden
from toolkit.model.prediction import Request
from toolkit.report.job import job_text
from toolkit.run.local import LocalRunner

CANARY = "c4n4ry $x `y` 'z'\nsecond line"
VALUES = {"MY_TOKEN": Hidden(CANARY)}

# A fake srun, mpirun and container runtime. It records its arguments, which the kernel shows to all users,
# and then runs the command.
PROGRAM = """#!/bin/bash
cat /proc/$$/cmdline >> "$SEEN"
while [ "$1" != sh ] && [ "$1" != singularity ]; do [ "$#" -gt 1 ] || exit 0; shift; done
exec "$@"
"""


def test_every_way_to_print_a_hidden_value_hides_it():
    value = Hidden("abc")
    for text in (str(value), repr(value), f"{value}", f"{value!s:>3}", "%s" % value, str({"A": value})):  # noqa: UP031
        assert "abc" not in text
        assert "[hidden]" in text
    assert value == "abc"
    assert type(value.reveal()) is str
    assert value.reveal() == Hidden(value).reveal() == "abc"


def test_no_record_can_hold_a_hidden_value():
    record = msgspec.structs.replace(RECORD, spec=spec(env={"A": Hidden("abc")}))
    with pytest.raises(TypeError):
        msgspec.json.encode(record)


@every_row("plan", [SRUN, MPIRUN, CONTAINED, ACROSS, GLOO, CARRIED], ids=lambda plan: plan.mode)
def test_no_argument_of_a_program_holds_a_value_and_every_rank_gets_it(tmp_path, plan):
    directory = tmp_path / "run"
    plan = msgspec.structs.replace(plan, wrapper=())
    printed = (
        'printf "%s|%s" "$MY_TOKEN" "$PLAIN" > "$TOOLKIT_JOB_DIR/arrived"; cat /proc/$$/cmdline >> "$SEEN"'
    )
    case = spec(
        directory=str(directory),
        nodes=1,
        preflight=False,
        command=("sh", "-c", printed),
        env={"PLAIN": "plain-c4n4ry"},
        secrets=("MY_TOKEN",),
    )
    hand_over(LocalRunner(), case, VALUES)
    script = job_script(case, msgspec.structs.replace(plan, launcher=plan.launcher[:1]), "x")
    assert "second line" not in script
    seen = tmp_path / "seen"
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("srun", "mpirun", "singularity"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    file = tmp_path / "job.sh"
    file.write_text(script)
    done = subprocess.run(
        ["bash", file],
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "SEEN": str(seen),
            "TOOLKIT_JOB_DIR": str(directory),
            "SLURM_JOB_ID": "1",
            "SLURM_NTASKS": "1",
            "SLURM_JOB_NODELIST": "n",
            "SLURM_JOB_NUM_NODES": "1",
        },
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert (directory / "arrived").read_text() == f"{CANARY}|plain-c4n4ry"
    assert b"run/variables.sh" in seen.read_bytes()
    assert b"c4n4ry" not in seen.read_bytes()


def test_the_files_of_the_values_are_for_the_user_alone(tmp_path):
    case = spec(directory=str(tmp_path / "run"), preflight=False, env={"A": "1"}, secrets=("MY_TOKEN",))
    hand_over(LocalRunner(), case, VALUES)
    before = os.umask(0o022)
    try:
        run(job_script(case, SRUN, "x"), tmp_path, ends=75)
    finally:
        os.umask(before)
    for name in (variables.FILE, variables.SECRETS):
        assert stat.S_IMODE((tmp_path / "run" / name).stat().st_mode) == 0o600


@every_row(("ends", "stays"), [(0, False), (1, False), (75, True), (143, True)])
def test_the_secrets_are_gone_when_the_job_has_ended_for_good(tmp_path, ends, stays):
    case = spec(directory=str(tmp_path / "run"), preflight=False, secrets=("MY_TOKEN",))
    hand_over(LocalRunner(), case, VALUES)
    ran = run(job_script(case, SRUN, "x"), tmp_path, ends=ends)
    assert ran.status == ends
    assert (tmp_path / "run" / variables.SECRETS).exists() == stays


def test_each_task_of_an_array_gets_the_secrets_and_leaves_them_to_the_others(tmp_path):
    case = spec(directory=str(tmp_path / "run"), preflight=False, array="0-1", secrets=("MY_TOKEN",))
    hand_over(LocalRunner(), case, VALUES)
    ran = run(job_script(case, SRUN, "x"), tmp_path, SLURM_ARRAY_JOB_ID="1", SLURM_ARRAY_TASK_ID="1")
    assert ran.status == 0, ran.said
    assert f"{tmp_path}/run/1/variables.sh" in ran.calls[-1]
    assert (tmp_path / "run" / variables.SECRETS).exists()
    assert not (tmp_path / "run" / "1" / variables.SECRETS).exists()


def test_a_script_without_its_secrets_says_which_are_missing(tmp_path):
    case = spec(directory=str(tmp_path / "run"), preflight=False, secrets=("MY_TOKEN", "B"))
    ran = run(job_script(case, SRUN, "x"), tmp_path)
    assert (ran.status, ran.calls) == (1, [])
    assert "run/secrets.sh, which sets MY_TOKEN, B, is missing" in ran.said


def test_a_value_cannot_end_the_file_of_the_variables_early(tmp_path):
    value = "a\nEND\nEND_\ntouch broke"
    case = spec(directory=str(tmp_path / "run"), preflight=False, env={"A": value})
    ran = run(job_script(case, SRUN, "x"), tmp_path)
    assert ran.status == 0, ran.said
    assert not list(tmp_path.rglob("broke"))


def test_a_record_is_shown_with_the_names_alone():
    text = job_text(msgspec.structs.replace(RECORD, spec=spec(secrets=("MY_TOKEN",))))
    assert "MY_TOKEN=[hidden]" in text


def test_a_hidden_setting_of_mpi_is_judged_and_no_finding_prints_it():
    env = {"OMPI_MCA_btl": Hidden("c4n4ry"), "OMPI_MCA_orte_x": Hidden("c4n4ry")}
    plain = {name: value.reveal() for name, value in env.items()}
    verdict = predict(HOST, IMAGE, Request(env=env))
    assert [p.outcome for p in verdict.predictions] == [
        p.outcome for p in predict(HOST, IMAGE, Request(env=plain)).predictions
    ]
    assert any(p.outcome == "init-failure" for p in verdict.predictions)
    said = [(p.because, p.missing) for p in verdict.predictions]
    assert "c4n4ry" not in str(said)
    assert b"c4n4ry" not in msgspec.json.encode(verdict.findings)
    assert "[hidden]" in str(said)


def test_a_name_alone_takes_the_value_of_the_caller_and_hides_it():
    found = variables.parse_pairs(["A=1", "B", "C="], {"B": "secret"}, "--env")
    assert found == {"A": "1", "B": "secret", "C": ""}
    assert [type(value) for value in found.values()] == [str, Hidden, str]


def test_a_variable_that_is_not_set_here_is_told_with_the_way_to_set_it():
    with pytest.raises(BadInput, match="--env B: the variable is not set") as raised:
        variables.parse_pairs(["B"], {}, "--env")
    assert raised.value.fix.startswith("set the variable: `read -rs B && export B")


def test_an_env_file_is_read_as_docker_reads_it():
    text = "# comment\n\nA=1 2\r\n  B = x\nC\nD='quoted' # kept\n"
    with pytest.raises(BadInput, match="f:4 B : not a valid variable name"):
        variables.parse_env_file(text, {}, "f")
    found = variables.parse_env_file(text.replace("B =", "B="), {"C": "mine"}, "f")
    assert found == {"A": "1 2", "B": " x", "C": "mine", "D": "'quoted' # kept"}
    assert all(type(value) is Hidden for value in found.values())


@every_row(
    ("name", "secret"),
    [
        ("WANDB_API_KEY", True), ("HF_TOKEN", True), ("AWS_SECRET_ACCESS_KEY", True), ("PGPASSWORD", True),
        ("MYSQL_PWD", True), ("REGISTRY_AUTH", True), ("github_token", True), ("X_CREDENTIALS", True),
        ("PWD", False), ("TOKENIZERS_PARALLELISM", False), ("MAX_TOKENS", False), ("NCCL_DEBUG", False),
        ("KEYBOARD", False), ("OMP_NUM_THREADS", False), ("AUTHOR", False),
    ],
)  # fmt: skip
def test_a_name_tells_whether_the_value_is_a_secret(name, secret):
    assert variables.looks_secret(name) == secret


def test_the_values_of_a_record_are_asked_for_again():
    given = {"A": Hidden("1")}
    assert variables.secrets_of_record(["A", "B"], given, {"B": "2"}) == {"A": "1", "B": "2"}
    with pytest.raises(
        BadInput, match="B, C: not set; a job record does not contain the values of secret variables"
    ):
        variables.secrets_of_record(["A", "B", "C"], given, {})


def test_a_nul_byte_is_refused_without_the_value():
    with pytest.raises(BadInput) as raised:
        variables.secrets_of({"A": Hidden("c4n4ry\0")})
    assert "c4n4ry" not in raised.value.message
    assert Path(variables.SECRETS).name == variables.SECRETS
