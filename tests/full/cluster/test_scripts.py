"""Test the scripts that ``make`` runs, with a fake ``docker`` and a fake ``toolkit``."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.services.program import ROOT


@pytest.fixture
def checkout(tmp_path):
    here = tmp_path / "checkout"
    here.mkdir()
    for name in ("scripts", "recipes"):
        shutil.copytree(ROOT / name, here / name)
    program(here / ".venv/bin/toolkit", 'echo "$*" >> "$NOTES"; [ "$1" != "${FAIL:-}" ] || exit 1\n${SLOW:-}')
    return here


@pytest.fixture
def env(tmp_path):
    program(tmp_path / "bin/docker", 'echo "docker $*" >> "$NOTES"')
    (tmp_path / "notes").touch()
    return {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "NOTES": str(tmp_path / "notes"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def run(checkout, env, *words, **more):
    return subprocess.run(
        [checkout / "scripts" / words[0], *words[1:]],
        cwd=checkout,
        env=env,
        capture_output=True,
        text=True,
        **more,
    )


def notes(env):
    return Path(env["NOTES"]).read_text().splitlines()


def test_clean_removes_the_environment_and_what_was_built_and_nothing_else(checkout, env):
    (checkout / "build/images").mkdir(parents=True)
    own = checkout / "mine.txt"
    own.touch()
    done = run(checkout, env, "clone.sh", "scripts/clean.sh", ".venv")
    assert done.returncode == 0, done.stderr
    assert "removed .venv and build" in done.stdout
    assert sorted(p.name for p in checkout.iterdir()) == [".toolkit-clone", "mine.txt", "recipes", "scripts"]


def test_demo_takes_its_cluster_down_when_a_step_fails_and_notes_no_result(checkout, env):
    (checkout / "build/demo").mkdir(parents=True)
    (checkout / "build/demo/result.json").touch()
    done = run(checkout, {**env, "FAIL": "doctor"}, "demo.sh", ".venv/bin", "tf2.21-cpu")
    assert done.returncode == 1
    assert notes(env)[-2:] == [
        "doctor build/images/tf2.21-cpu.sif --cluster demo",
        "cluster down --name demo",
    ]
    assert not (checkout / "build/demo/result.json").exists()


def test_demo_runs_its_six_steps_and_takes_the_cluster_down(checkout, env):
    done = run(checkout, env, "demo.sh", ".venv/bin", "tf2.21-cpu")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in notes(env)] == [
        "image", "image", "cluster", "doctor", "data", "launch", "report", "cluster",
    ]  # fmt: skip
    assert done.stdout.count("/6] ") == 6


def test_demo_keeps_the_cluster_when_asked_and_says_how_to_use_it(checkout, env):
    done = run(checkout, {**env, "KEEP": "1"}, "demo.sh", ".venv/bin", "tf2.21-cpu")
    assert done.returncode == 0, done.stderr
    assert "cluster down --name demo" not in notes(env)
    assert ".venv/bin/toolkit cluster shell --name demo" in done.stdout


def test_a_recipe_of_ones_own_names_the_sif(checkout, env):
    done = run(checkout, env, "image.sh", ".venv/bin", "/some where/my own.toml")
    assert done.returncode == 0, done.stderr
    assert notes(env)[-1] == "image sif /some where/my own.toml -o build/images/my own.sif"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_demo_ends_its_step_at_once_and_takes_the_cluster_down(checkout, env, number, status):
    waiting = 'sleep 60 > /dev/null 2>&1 & trap "kill $!; echo ended >> $NOTES; exit 130" INT TERM; wait'
    slow = {**env, "SLOW": f'[ "$1" != launch ] || {{ {waiting}; }}'}
    program(checkout / ".venv/bin/toolkit", 'echo "$*" >> "$NOTES"; eval "$SLOW"')
    words = [checkout / "scripts/with-engine.sh", checkout / "scripts/demo.sh", ".venv/bin", "tf2.21-cpu"]
    process = subprocess.Popen(
        words, cwd=checkout, env=slow, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    until = time.monotonic() + 20
    while not any(line.startswith("launch") for line in notes(env)):
        assert time.monotonic() < until
        time.sleep(0.05)
    began = time.monotonic()
    os.kill(process.pid, number)
    process.communicate(timeout=20)
    assert process.returncode == status
    assert time.monotonic() - began < 15
    assert notes(env)[-2:] == ["ended", "cluster down --name demo"]


def test_two_demos_in_one_folder_are_one_too_many(checkout, env):
    (checkout / "build/demo").mkdir(parents=True)
    held = ["flock", checkout / "build/demo/.lock", "sleep", "60"]
    with subprocess.Popen(held) as holder:
        time.sleep(0.3)
        done = run(checkout, env, "demo.sh", ".venv/bin", "tf2.21-cpu")
        subprocess.run(["pkill", "-P", str(holder.pid)], check=False)
        holder.kill()
    assert done.returncode == 3
    assert "another make demo runs" in done.stderr
    assert notes(env) == []


def test_a_half_made_environment_is_made_again_and_is_not_ready_until_all_is_installed(
    checkout, env, tmp_path
):
    shutil.rmtree(checkout / ".venv")
    # This is the state after an interrupted `python -m venv`.
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/python").symlink_to(sys.executable)
    for name in ("dockerd", "mmdebstrap", "npm", "ssh", "shellcheck", "strace", "chromium"):
        program(tmp_path / "bin" / name, "true")
    path = f"{tmp_path}/bin:{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"
    # The installation fails, because the checkout has no pyproject.toml.
    done = run(checkout, {**env, "PATH": path}, "setup.sh", ".venv")
    assert done.returncode != 0
    assert "making the virtual environment .venv" in done.stdout
    assert (checkout / ".venv/bin/pip").exists()
    assert not (checkout / ".venv/ready").exists()
