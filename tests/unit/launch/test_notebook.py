"""Test a notebook's job: its command and files, the storage of the token, and the wait for the start."""

import json
import stat
import subprocess
import sys
import urllib.parse
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engine.whole import IMAGE
from tests.unit.launch.examples import RECORD, job_script, spec
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.data import shipped_folder
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.launch import notebook
from toolkit.launch.tracking import follow, jobs
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.prediction import Plan
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
from toolkit.run.remote.ssh import shell_line

OURS = msgspec.structs.replace(IMAGE, stack={"python": "3.11"})
PLACE = notebook.NotebookAddress("node1", 40017)

hostile = st.text(
    st.characters(exclude_characters="\0/,:\n", exclude_categories=("Cs",)), min_size=1, max_size=20
).filter(lambda text: text not in {".", ".."})

PLAN = Plan(mode=notebook.MODE, launcher=("srun", "--mpi=none"))


def record(folder, **changes):
    command = notebook.command(str(folder), "/work/ada", "", OURS)
    what = spec(name="notebook", directory=str(folder), nodes=1, command=command, preflight=False)
    return msgspec.structs.replace(RECORD, spec=what, mode="srun-none", plan=PLAN, **changes)


class Slurm:
    def __init__(self, monkeypatch, *answers):
        self.left = list(answers)
        monkeypatch.setattr(jobs, "query", lambda *_: self.left.pop(0) if self.left[1:] else self.left[0])
        monkeypatch.setattr(notebook, "_POLLS", (0.01, 0.02))


@pytest.fixture(autouse=True)
def _own_records(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_an_image_of_ours_has_its_python_under_its_own_name():
    assert notebook.command("/j", "/w", "", OURS) == ("python", "/j/notebook.py", "/j", "/w")
    theirs = msgspec.structs.replace(IMAGE, stack=None)
    assert notebook.command("/j", "/w", "/p", theirs) == ("python3", "/j/notebook.py", "/j", "/w", "/p")


def test_a_notebook_is_told_from_other_jobs(tmp_path):
    assert notebook.is_notebook(record(tmp_path).spec)
    assert not notebook.is_notebook(RECORD.spec)


def test_folder_and_token_are_their_owners_alone(tmp_path):
    folder = tmp_path / "runs" / "one"
    token = notebook.prepare(LocalRunner(), record(folder).spec, "apptainer")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(f.stat().st_mode) for f in folder.iterdir()} == {0o600}
    assert (folder / "token").read_text() == token
    assert len(token) >= 40
    assert notebook.token_of(LocalRunner(), record(folder)) == token


def test_every_notebook_has_a_token_of_its_own(tmp_path):
    made = [notebook.prepare(LocalRunner(), record(tmp_path / str(n)).spec, "apptainer") for n in range(3)]
    assert len(set(made)) == 3


def test_the_token_is_in_no_other_file_no_script_and_no_command(tmp_path):
    one = record(tmp_path / "one")
    token = notebook.prepare(LocalRunner(), one.spec, "apptainer")
    script = job_script(one.spec, PLAN, "why", "apptainer")
    texts = [script, " ".join(notebook.relay_command(one, PLACE).words), msgspec.json.encode(one).decode()]
    texts += [f.read_text() for f in (tmp_path / "one").iterdir() if f.name != "token"]
    assert not any(token in text for text in texts)


def test_the_address_is_this_machines_and_holds_the_token():
    found = urllib.parse.urlsplit(notebook.address(8888, "a-b_c"))
    assert (found.scheme, found.netloc) == ("http", "127.0.0.1:8888")
    assert urllib.parse.parse_qs(found.query) == {"token": ["a-b_c"]}


def test_the_far_end_is_one_more_step_of_the_job(tmp_path):
    words = notebook.relay_command(record(tmp_path, id="77"), PLACE).words
    assert words[0] == "srun"
    assert {"--jobid=77", "--overlap", "--ntasks=1", "--mpi=none"} <= set(words)
    assert words[-3:] == ("sh", f"{tmp_path}/relay.sh", "40017")


@settings(max_examples=count(20, 40), deadline=None)
@given(name=hostile, image=hostile)
def test_hostile_paths_start_the_relay_and_nothing_else(tmp_path_factory, name, image):
    base = tmp_path_factory.mktemp("far")
    folder = base / "runs" / name
    folder.mkdir(parents=True)
    tools = base / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    for program in ("python3", "apptainer"):
        (tools / program).write_text(f'#!/bin/sh\nprintf "%s\\0" {program} "$@" > "{base}/words"\n')
        (tools / program).chmod(0o755)
    one = record(folder)
    one = msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, image=f"/i/{image}.sif"))
    (folder / "relay.sh").write_bytes(notebook.files(one.spec, "apptainer")["relay.sh"])
    words = notebook.relay_command(one, PLACE).words
    line = shell_line(Command(words[words.index("sh") :]))

    def called():
        subprocess.run(["/bin/sh", "-c", line], env={"PATH": str(tools)}, check=True, cwd=base)
        return (base / "words").read_bytes().decode().split("\0")[:-1]

    python = ["python3", f"{folder}/relay.py", "40017"]
    assert called() == python
    (tools / "python3").unlink()
    assert called() == ["apptainer", "exec", "--bind", str(folder), one.spec.image, *python]
    assert sorted(p.name for p in base.iterdir()) == ["bin", "runs", "words"]


def test_the_relay_script_is_clean_shell():
    text = notebook.files(record(Path("/work/a b")).spec, "apptainer")["relay.sh"].decode()
    subprocess.run(["shellcheck", "-"], input=text, text=True, check=True)


def test_an_image_without_jupyter_ends_in_3_with_a_sentence(tmp_path):
    words = [sys.executable, "-S", str(shipped_folder("slurm") / "notebook.py"), str(tmp_path), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == notebook.NO_JUPYTER
    assert done.stderr.startswith("notebook: there is no Jupyter in this image")
    assert len(done.stderr.splitlines()) == 1


def test_jupyter_is_told_to_keep_to_loopback_and_to_the_token_in_the_file(tmp_path):
    (tmp_path / "packages" / "jupyter_server").mkdir(parents=True)
    (tmp_path / "packages" / "jupyter_server" / "__init__.py").write_text("")
    # A stand-in for Jupyter that prints its arguments and variables.
    (tmp_path / "packages" / "jupyter_server" / "serverapp.py").write_text(
        "import json, os, sys\n"
        "class ServerApp:\n"
        "    def launch_instance(argv):\n"
        "        print(json.dumps([argv, dict(os.environ), sys.argv]))\n"
    )
    words = [sys.executable, "-S", str(shipped_folder("slurm") / "notebook.py"), str(tmp_path), "/work/a b"]
    told = {"JUPYTER_TOKEN": "of somebody else", "PATH": "/bin"}
    done = subprocess.run(
        [*words, str(tmp_path / "packages")], env=told, capture_output=True, check=True, timeout=60
    )
    argv, variables, line = json.loads(done.stdout)
    assert {"--ServerApp.ip=127.0.0.1", "--ServerApp.root_dir=/work/a b"} <= set(argv)
    assert not any("token" in word.lower() for word in (*argv, *line[1:]))
    assert variables["JUPYTER_TOKEN_FILE"] == f"{tmp_path}/token"
    assert variables["JUPYTER_NO_CONFIG"] == "1"
    assert "JUPYTER_TOKEN" not in variables
    assert variables["PYTHONPATH"] == f"{tmp_path}/packages"


def test_it_is_ready_when_it_says_where(tmp_path, monkeypatch):
    Slurm(monkeypatch, JobStatus("pending", "Priority"), JobStatus("running", nodes="node1"))
    (tmp_path / "notebook.json").write_text('{"host": "node1", "port": 40017}')
    seen = []
    _, place = notebook.wait_until_ready(LocalRunner(), record(tmp_path), seen.append)
    assert place == PLACE
    assert [status.state for status in seen] == ["pending", "running"]


@every_row("state", ["failed", "cancelled", "timeout", "completed"])
def test_a_job_that_ends_before_is_told(tmp_path, monkeypatch, state):
    Slurm(monkeypatch, JobStatus("pending"), JobStatus(state, exit_code=3))
    ended, place = notebook.wait_until_ready(LocalRunner(), record(tmp_path), lambda _: None)
    assert place is None
    assert (ended.state, ended.exit_code) == (state, 3)


def test_one_that_never_listens_is_told(tmp_path, monkeypatch):
    Slurm(monkeypatch, JobStatus("running"))
    monkeypatch.setattr(notebook, "_START_SECONDS", 0.05)
    with pytest.raises(CheckFailed, match="did not start"):
        notebook.wait_until_ready(LocalRunner(), record(tmp_path), lambda _: None)


def test_a_controller_that_is_gone_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    Slurm(monkeypatch, JobStatus("pending"), JobStatus("unknown", answer="silent"))
    monkeypatch.setattr(follow, "_SILENT_SECONDS", 0.05)
    with pytest.raises(Missing, match="has not answered for 0 minutes; the job may still run") as caught:
        notebook.wait_until_ready(LocalRunner(), record(tmp_path), lambda _: None)
    assert "toolkit notebook --attach" in caught.value.fix


def test_a_controller_that_comes_back_is_waited_for(tmp_path, monkeypatch):
    silent = JobStatus("unknown", answer="silent")
    Slurm(monkeypatch, JobStatus("pending"), silent, silent, JobStatus("running", nodes="node1"))
    (tmp_path / "notebook.json").write_text('{"host": "node1", "port": 40017}')
    assert notebook.wait_until_ready(LocalRunner(), record(tmp_path), lambda _: None)[1] == PLACE


def test_what_is_secret_goes_with_the_job(tmp_path):
    one = record(tmp_path / "one")
    notebook.prepare(LocalRunner(), one.spec, "apptainer")
    (tmp_path / "one" / "jupyter").mkdir()
    (tmp_path / "one" / "output.log").write_text("kept")
    notebook.clear(LocalRunner(), one)
    left = {f.name for f in (tmp_path / "one").iterdir()}
    assert left == {"notebook.py", "relay.py", "relay.sh", "output.log"}
    with pytest.raises(Missing, match="has ended"):
        notebook.token_of(LocalRunner(), one)


def test_a_notebook_is_refused_for_a_runtime_by_which_its_tunnel_does_not_start():
    from toolkit.job.notebook import _check_runtime

    _check_runtime("/opt/bin/singularity")
    with pytest.raises(BadInput, match="a notebook needs Apptainer or Singularity"):
        _check_runtime("podman")
