"""Test that the commands of docs/howto/own-packages.md work for an ordinary user on a login node."""

import io
import posixpath
import re
import tarfile
from pathlib import Path

import pytest

from tests.services.jobs import last_record, launched
from tests.unit.image.envs.made import write_wheel
from toolkit.run.command import Command

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "own-packages.md"
TRAIN = """
import os
import tqdm
import xxhash
import myproj
print("rank", os.environ["SLURM_PROCID"], tqdm.__file__, xxhash.VERSION, myproj.WHAT, flush=True)
"""
OFFLINE = "export UV_OFFLINE=1 UV_NO_INDEX=1 PIP_FIND_LINKS=$PWD/wheels"
"""Settings for uv and pip, because a virtual cluster cannot reach a package index."""
PROJECT = '[project]\nname = "myproj"\nversion = "1"\ndependencies = ["tqdm"]\n'
SECONDS = 300.0


def commands():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if re.match(r"    toolkit (env|launch|doctor)", line)]


@pytest.fixture(scope="module")
def folder(cluster, training_sif, login, tmp_path_factory):
    launched(["--cluster", cluster.name, "--image", str(training_sif)], "--no-preflight", "--", "true")
    image = last_record()["spec"]["image"]
    here = f"/work/{cluster.user}/packages"
    wheels = tmp_path_factory.mktemp("packages") / "wheels"
    for name, version in (("tqdm", "4.67"), ("xxhash", "3.5"), ("boltons", "24.1")):
        wheel = write_wheel(wheels, name, version)
        login.send(wheel, f"{here}/wheels/{wheel.name}")
    source = wheels / "made-1.0.tar.gz"
    sdist(source)
    login.send(source, f"{here}/wheels/{source.name}")
    requirements = re.search(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    for name, text in {
        "requirements.txt": requirements,
        "train.py": TRAIN,
        "proj/pyproject.toml": PROJECT,
        "proj/src/myproj/__init__.py": 'WHAT = "outside"\n',
    }.items():
        login.write(f"{here}/{name}", text.encode())
    login.run(Command.of("cp", image, f"{here}/centre.sif")).require("copying the image")
    return here


def sdist(path):
    """Write a source distribution whose build back end needs no other package."""
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "made"\nversion = "1.0"\n',
        "PKG-INFO": "Metadata-Version: 2.2\nName: made\nVersion: 1.0\n",
        "backend.py": BACKEND,
    }
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"made-1.0/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))


BACKEND = """
import platform
import zipfile


def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "made-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("made.py", f"PYTHON = {platform.python_version()!r}")
        wheel.writestr("made-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: made\\nVersion: 1.0\\n")
        wheel.writestr("made-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("made-1.0.dist-info/RECORD", "made.py,,\\n")
    return name
"""


def shell(login, folder, line):
    done = login.run(Command.of("bash", "-lc", f"cd {folder} && {OFFLINE} && {line}", timeout=SECONDS))
    return done.status, done.text + done.errors


def test_the_commands_of_the_page_work(login, folder):
    assert len(commands()) >= 8
    said = {}
    for line in commands():
        if "old.env" in line:
            shell(login, folder, "cp my.env old.env")
        status, said[line] = shell(login, folder, line)
        assert status == 0, f"{line}\n{said[line]}"
    ranks = next(text for line, text in said.items() if line.startswith("toolkit launch"))
    found = r"rank {} /opt/toolkit-env/lib/python3\.\d+/site-packages/tqdm/__init__\.py 3\.5 outside"
    assert all(re.search(found.format(rank), ranks) for rank in (0, 1)), ranks


def test_a_package_is_built_inside_the_image(login, folder):
    status, said = shell(login, folder, "toolkit env add my.env made --over centre.sif")
    assert status == 0, said
    line = "toolkit launch --image centre.sif --env-image my.env --no-preflight -- "
    status, said = shell(login, folder, f"{line} python -c 'import made; print(made.PYTHON)'")
    assert status == 0, said
    assert re.search(r"^3\.\d+\.\d+$", said, re.MULTILINE), said


def test_a_contradiction_is_told_in_the_words_of_the_page(login, folder):
    login.write(posixpath.join(folder, "bad.txt"), b"numpy<1.20\n")
    status, said = shell(login, folder, "toolkit env create -f bad.txt --over centre.sif -o bad.env")
    assert status == 1
    told = re.search(r"```text\n(error: numpy.*?)\nhint: ", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert re.sub(r"has \S+,", "has X,", told) in re.sub(r"has \S+,", "has X,", said)


def test_a_changed_image_is_refused(login, folder):
    shell(login, folder, "cp centre.sif other.sif && printf x >> other.sif")
    line = "toolkit launch --image other.sif --env-image my.env -- python train.py"
    status, said = shell(login, folder, line)
    assert status == 1, said
    assert "the environment was made over centre.sif" in said
    assert "toolkit env add" in said
