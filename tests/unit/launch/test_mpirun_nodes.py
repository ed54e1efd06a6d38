"""Test the script that starts mpirun's daemons in containers, with stand-ins for Slurm, the runtime and
mpirun.
"""

import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.launch.jobscript.plan import MPIRUN_FILE

CONTAINER = ("env", "-u", "A B", "singularity", "exec", "--bind", "/a 'b'", "/images/$(x) y.sif")
_CONTAINER = """#!/bin/bash
while [ "${1##*.}" != sif ]; do shift; done
exec "${@:2}"
"""
_SRUN = """#!/bin/bash
printf '%s\\0' "$(($# + 1))" "${SLURM_OVERLAP:-}${SRUN_CPUS_PER_TASK:-}" "$@" >> "$RECORDED"
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""
text = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30)


@dataclass(frozen=True)
class Place:
    folder: Path
    job: Path
    env: dict[str, str]

    def mpirun(self, script: str) -> None:
        program = self.folder / "bin" / "mpirun"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def start(self, *words: str) -> subprocess.Popen:
        line = ["bash", str(self.job / MPIRUN_FILE), *CONTAINER, "--", "mpirun", *words]
        return subprocess.Popen(line, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words: str) -> tuple[int, str]:
        ran = self.start(*words)
        out, errors = ran.communicate(timeout=60)
        return ran.returncode, out + errors

    @property
    def calls(self) -> list[list[str]]:
        """Return the recorded variables and arguments of each srun call."""
        words, calls = (self.folder / "recorded").read_bytes().decode().split("\0")[:-1], []
        while words:
            count = int(words[0])
            calls.append(words[1 : count + 1])
            words = words[count + 1 :]
        return calls


def hurried(script: str) -> str:
    """Return the script with pauses four times shorter: a daemon has 1.25 s to start instead of 5 s."""
    assert script.count("sleep 0.2") == script.count("sleep") == 3
    return script.replace("sleep 0.2", "sleep 0.05")


def placed(folder: Path, nodes: int = 2) -> Place:
    job, programs = folder / "runs 'x'", folder / "bin"
    job.mkdir()
    programs.mkdir()
    (job / MPIRUN_FILE).write_text(hurried((shipped_folder("slurm") / MPIRUN_FILE).read_text()))
    for name, script in (("singularity", _CONTAINER), ("srun", _SRUN)):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    (folder / "recorded").write_bytes(b"")
    env = {"PATH": f"{programs}:/usr/bin:/bin", "RECORDED": str(folder / "recorded")}
    return Place(folder, job, {**env, "SLURM_JOB_NUM_NODES": str(nodes), "SRUN_CPUS_PER_TASK": "4"})


@pytest.fixture
def place(tmp_path):
    return placed(tmp_path)


def waits_for(*files: str) -> str:
    return "".join(f"until [ -e {shlex.quote(file)} ]; do sleep 0.05; done\n" for file in files)


def test_what_mpirun_gives_to_ssh_runs_on_that_node_in_such_a_container(place):
    there = place.folder / "daemon"
    place.mpirun(f"""toolkit-agent -x node2 'PATH=/opt/mpi/bin:$PATH ;' touch "$1"
        {waits_for(str(there))}echo ran""")
    status, said = place.run(str(there))
    assert (status, said) == (0, "ran\n")
    (call,) = place.calls
    assert call[0] == "1"  # SLURM_OVERLAP: the daemon may use the cores of other steps
    assert {"--nodelist=node2", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mpi=none"} <= set(call)
    agent = str(place.job / "daemons" / "toolkit-agent")
    assert call[call.index("env") : -3] == [*CONTAINER, "sh", agent, "--start"]
    assert call[-3:-1] == ["sh", "-c"]
    assert call[-1] == f"PATH=/opt/mpi/bin:$PATH ; touch {there}"
    assert [file.name for file in place.job.iterdir()] == [MPIRUN_FILE]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(node=text.filter(lambda word: not word.startswith("-")), words=st.lists(text, max_size=3))
@example(node="node2", words=["$(touch broke)", "`touch broke`", "a b", "'\"", "\n"])
@example(node="; touch broke", words=["\\", "-x", "", "*", "%s", "\\000"])
def test_hostile_words_reach_srun_as_they_are(tmp_path_factory, node, words):
    place = placed(tmp_path_factory.mktemp("job"))
    # toolkit does not check mpirun's command, so this srun records the command and does not run it.
    (place.folder / "bin" / "srun").write_text(_SRUN.replace('exec "$@"', ': > "$RECORDED.done"'))
    place.mpirun('toolkit-agent "$@"\n' + waits_for(f"{place.folder}/recorded.done"))
    assert place.run(node, *words) == (0, "")
    (call,) = place.calls
    assert f"--nodelist={node}" in call
    assert call[-3:] == ["sh", "-c", " ".join(words)]
    assert sorted(p.name for p in place.folder.iterdir()) == [
        "bin",
        "recorded",
        "recorded.done",
        place.job.name,
    ]


def test_each_node_gets_its_daemon(tmp_path):
    place = placed(tmp_path, nodes=3)
    files = [str(tmp_path / name) for name in ("b", "c")]
    place.mpirun(
        f"toolkit-agent node2 touch {files[0]} & toolkit-agent node3 touch {files[1]}\n{waits_for(*files)}"
    )
    assert place.run() == (0, "")
    assert {word for call in place.calls for word in call if "nodelist" in word} == {
        "--nodelist=node2",
        "--nodelist=node3",
    }


@every_row("nodes", [1, 2])
def test_the_status_of_mpirun_is_that_of_the_script(tmp_path, nodes):
    place = placed(tmp_path, nodes)
    place.mpirun("exit 75")
    assert place.run() == (75, "")
    assert place.calls == []


def test_a_daemon_that_cannot_be_started_ends_mpirun_with_its_status(place):
    place.mpirun("toolkit-agent node2 exit 7; exec sleep 50")
    began = time.monotonic()
    status, said = place.run()
    assert status == 7
    assert said == "job: the daemon of mpirun on node2 exited with status 7; stopping mpirun\n"
    assert time.monotonic() - began < 30


def test_a_daemon_that_fails_as_mpirun_ends_is_its_own_business(place):
    place.mpirun("toolkit-agent node2 exit 7; sleep 0.2; exit 75")
    assert place.run() == (75, "")


def test_mpirun_is_asked_to_end_once(place):
    asked, enough = place.folder / "asked", place.folder / "enough"
    place.mpirun(f"trap 'echo asked >> {asked}' TERM\necho up\n{waits_for(str(enough))}exit 3")
    ran = place.start()
    assert ran.stdout.readline() == "up\n"
    ran.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 20
    while not asked.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    ran.send_signal(signal.SIGTERM)
    time.sleep(0.1)  # a second signal could arrive now
    enough.touch()
    ran.communicate(timeout=30)
    assert ran.returncode == 3
    assert asked.read_text() == "asked\n"


def test_it_is_clean_shell_that_stands_in_a_job_script_as_it_is():
    file = shipped_folder("slurm") / MPIRUN_FILE
    subprocess.run(["shellcheck", file], check=True)
    # The job script quotes this file in single quotes, so the file is readable only without single quotes.
    assert "'" not in file.read_text()
