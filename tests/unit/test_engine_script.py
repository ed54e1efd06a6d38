"""Test the scripts that start a Docker engine for one command and stop it, with stand-ins for Docker."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
DOCKER = """#!/bin/sh
exec test -e {folder}/answers
"""
DOCKERD = """#!/bin/sh
# As the real one does, a second one ends at the sight of the first one's file.
set -C
for word; do file=$word; done
echo $$ > "$file" 2>/dev/null || exit 1
trap 'rm -f {folder}/answers "$file"; echo stopped >> {folder}/log; exit 0' TERM
sleep 0.1
echo started >> {folder}/log
: > {folder}/answers
while :; do sleep 0.02; done
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """Return a folder with copies of the scripts that write only to this folder."""
    for name in ("engine.sh", "with-engine.sh"):
        text = (SCRIPTS / name).read_text().replace("/run/toolkit-engine", f"{tmp_path}/run")
        text = text.replace("folder=/run;", f"folder={tmp_path};").replace('"$(id -u)" != 0', "1 = 0")
        text = text.replace('"$(id -u)" = 0', "1 = 1").replace("sleep 0.5", "sleep 0.02")
        text = text.replace("seq 60", "seq 3000")
        (tmp_path / name).write_text(text)
    for name, text in (("docker", DOCKER), ("dockerd", DOCKERD)):
        (tmp_path / name).write_text(text.format(folder=tmp_path))
    for file in tmp_path.iterdir():
        file.chmod(0o755)
    return tmp_path


def start(scripts: Path, *words: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    return subprocess.Popen([str(scripts / "with-engine.sh"), *words], env=env, stdin=subprocess.DEVNULL)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_commands_at_once_share_one_engine_and_the_last_of_them_stops_it(scripts: Path):
    command = 'touch "$0.up"; until [ -e "$0.end" ]; do sleep 0.02; done'
    files = [scripts / "first", scripts / "second"]
    both = [start(scripts, "sh", "-c", command, str(file)) for file in files]
    until(lambda: all(file.with_suffix(".up").exists() for file in files))
    for file, ran in zip(files, both, strict=True):
        assert (scripts / "answers").exists()
        file.with_suffix(".end").touch()
        assert ran.wait(60) == 0
    until(lambda: not (scripts / "answers").exists())
    assert (scripts / "log").read_text().split() == ["started", "stopped"]
    assert not (scripts / "run").exists()


def test_an_engine_that_runs_already_is_left_alone(scripts: Path):
    (scripts / "answers").touch()
    assert start(scripts, "true").wait(60) == 0
    assert (scripts / "answers").exists()
    assert not (scripts / "log").exists()
