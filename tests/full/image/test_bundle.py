"""Test a bundle and its installation on a machine without a network."""

import json
import os
import subprocess

from tests.services.program import toolkit

SMALL = "mpi-only"


def test_it_installs_and_builds_with_the_network_cut_off(engine, tmp_path):
    toolkit("image", "build", SMALL, timeout=1800)
    archive = tmp_path / "toolkit.tar"
    made = json.loads(toolkit("image", "bundle", SMALL, "-o", str(archive), "--no-builder", "--json").stdout)
    assert made["index"]["recipes"] == [SMALL]
    subprocess.run(["sha256sum", "--check", "toolkit.tar.sha256"], cwd=tmp_path, check=True)
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir()
    home.mkdir()
    subprocess.run(["tar", "xf", str(archive), "-C", str(there)], check=True)
    program = home / ".local" / "toolkit" / "bin" / "toolkit"
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "TOOLKIT_CACHE_DIR": str(home / "cache")}

    alone = ["unshare"] if os.geteuid() == 0 else ["unshare", "--map-current-user"]

    def cut_off(*words):
        # The command reaches the Docker engine's socket without a network. Builds have no network.
        done = subprocess.run(
            [*alone, "--net", *words], env=env, cwd=home, capture_output=True, text=True, timeout=1200
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    cut_off("sh", str(there / "install.sh"))
    for link in made["index"]["images"]:
        assert engine.images.get(link["name"]).id == link["id"]
    listed = json.loads(cut_off(str(program), "image", "list", "--json").stdout)
    assert SMALL in {recipe["name"] for recipe in listed["recipes"]}
    built = json.loads(cut_off(str(program), "image", "build", SMALL, "--json").stdout)
    assert built["recipe"] == SMALL

    # One changed byte must prevent the installation.
    (file, *_) = there.glob("files/*/*")
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    words = ["sh", str(there / "install.sh"), "--prefix", str(home / "other")]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert file.name in done.stderr
    assert "the bundle is damaged" in done.stderr
    assert not (home / "other").exists()
