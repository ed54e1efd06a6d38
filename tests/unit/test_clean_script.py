"""Test that ``make clean`` removes only what this clone made, with a stand-in for Docker."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
DOCKER = """#!/bin/bash
echo "$*" >> {log}
case "$*" in
    version) ;;
    *"container ls --all --format"*) [[ "$*" == *"label=toolkit.clone=$TOOLKIT_CLONE"* ]] && echo demo ;;
    *"container ls --all --quiet --filter label=toolkit=run"*)
        [[ "$*" == *"label=toolkit.clone=$TOOLKIT_CLONE"* ]] && echo mine || echo others ;;
    *"ls --quiet"*"toolkit.cluster=demo --filter label=toolkit.clone=$TOOLKIT_CLONE") echo "of-$1" ;;
    *"image inspect"*made-here:latest) echo sha256:1 ;;
    *"image inspect"*made-anew:latest) echo sha256:9 ;;
esac
"""


class Clone:
    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "docker.log"
        (folder / "scripts").mkdir()
        for name in ("clone.sh", "clean.sh", "engine.sh"):
            shutil.copy(SCRIPTS / name, folder / "scripts" / name)
        docker = folder / "bin" / "docker"
        docker.parent.mkdir()
        docker.write_text(DOCKER.format(log=shlex.quote(str(self.log))))
        docker.chmod(0o755)
        self.env = {**os.environ, "PATH": f"{docker.parent}:{os.environ['PATH']}", "HOME": str(folder)}
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "TOOLKIT_CACHE_DIR"):
            self.env.pop(variable, None)

    @property
    def state(self) -> Path:
        return self.folder / ".local/state/toolkit"

    def job(self, key: str, cluster: str) -> Path:
        record = self.state / "jobs" / key / "record.json"
        record.parent.mkdir(parents=True)
        record.write_text(f'{{"key": "{key}", "cluster": "{cluster}"}}')
        return record

    def run(self, *words: str, **env: str) -> str:
        command = ["scripts/clone.sh", *words]
        done = subprocess.run(
            command, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def clean(self, **env: str) -> str:
        (self.folder / "build").mkdir(exist_ok=True)
        (self.folder / "build/made.images").write_text(
            "sha256:1 made-here:latest\nsha256:1 made-here:latest\nsha256:2 made-anew:latest\n"
        )
        return self.run("scripts/clean.sh", ".venv", **env)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_clone_has_an_identity_of_its_own_that_stays(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    first, second = Clone(one), Clone(other)
    words = ("sh", "-c", "echo $TOOLKIT_CLONE")
    assert first.run(*words) == first.run(*words) != second.run(*words)
    assert len(first.run(*words).strip()) == 12


def test_only_containers_clusters_and_images_of_this_clone_are_removed(clone: Clone) -> None:
    assert "removed 1 virtual clusters and 1 images of this clone" in clone.clean()
    removed = [call for call in clone.calls() if " rm " in call]
    assert removed == [
        *(f"{kind} rm --force of-{kind}" for kind in ("container", "network", "volume")),
        "container rm --force mine",
        "image rm made-here:latest",
    ]
    assert not any("prune" in call for call in clone.calls())


def test_a_cluster_that_holds_jobs_of_the_user_stays_with_their_records(clone: Clone) -> None:
    mine, elsewhere = clone.job("net-1", "demo"), clone.job("net-2", "other")
    own = clone.job("mnist-1", "demo")
    cache = clone.folder / ".cache/toolkit/files"
    cache.mkdir(parents=True)

    def clean(**env: str) -> str:
        (clone.folder / "build").mkdir(exist_ok=True)
        (clone.folder / "build/made.jobs").write_text("mnist-1\n")
        return clone.clean(**env)

    assert "kept the cluster demo, because it has jobs of yours: net-1" in clean()
    assert (mine.exists(), elsewhere.exists(), own.exists(), cache.exists()) == (True, True, False, True)
    assert not any("of-volume" in call for call in clone.calls())
    assert "kept the cluster" not in clean(ALL="1")
    assert (mine.exists(), elsewhere.exists(), cache.exists()) == (False, True, False)
    assert "volume rm --force of-volume" in clone.calls()
