"""Test that toolkit and unsquashfs can read a squashfs that toolkit wrote."""

import os
import random
import shutil

import pytest

from toolkit.errors import BadInput
from toolkit.image.files.bounded import Budget
from toolkit.image.files.sif.squash import SquashTree
from toolkit.image.files.sif.squashwrite import BLOCK, write_squashfs
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

NOISE = random.Random(7).randbytes(3 * BLOCK + 17)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "root"
    for name, content in {
        "noise": NOISE,
        "zeros": bytes(2 * BLOCK),
        "exact": b"x" * BLOCK,
        "empty": b"",
        "deep/er/and/er/file.py": b"print()\n",
        "run": b"#!/bin/sh\n",
        "n" * 250: b"long",
        "é": "ü".encode(),
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (root / "run").chmod(0o700)
    (root / "link").symlink_to("deep/er")
    (root / "none").mkdir()
    (root / "wide").mkdir()
    for number in range(3000):
        (root / "wide" / f"a rather long name of a module {number}.py").write_text(
            str(number) * (number % 50)
        )
    return root


def test_all_of_it_is_read_back(folder, tmp_path):
    out = tmp_path / "out.sqsh"
    with out.open("w+b") as file:
        size = write_squashfs(folder, file, 1_000_000_000)
    assert size == out.stat().st_size
    with out.open("rb") as file:
        tree = SquashTree(file, 0, "out", Budget("out", looks=10_000_000))
        for path in sorted(folder.rglob("*")):
            inside = f"/{path.relative_to(folder)}"
            if path.is_symlink():
                assert tree.target(inside) == str(path.readlink())
            elif path.is_dir():
                assert sorted(tree.names(inside)) == sorted(one.name for one in path.iterdir())
            else:
                assert tree.content(inside, 1 << 30) == path.read_bytes(), inside


def test_unsquashfs_reads_it(folder, tmp_path):
    out = tmp_path / "out.sqsh"
    with out.open("w+b") as file:
        write_squashfs(folder, file, 1_000_000_000)
    LocalRunner().run(Command.of("unsquashfs", "-q", "-n", "-d", str(tmp_path / "back"), str(out))).require(
        "x"
    )
    words = ("diff", "-r", "--no-dereference", str(folder), str(tmp_path / "back"))
    assert LocalRunner().run(Command(words)).ok
    assert (tmp_path / "back" / "run").stat().st_mode & 0o777 == 0o755


def test_equal_folders_give_equal_bytes(folder, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folder, other, symlinks=True)
    texts = []
    for root in (folder, other):
        with (tmp_path / "out").open("w+b") as file:
            write_squashfs(root, file, 1)
        texts.append((tmp_path / "out").read_bytes())
    assert texts[0] == texts[1]


def test_a_pipe_is_refused(tmp_path):
    (tmp_path / "root").mkdir()
    os.mkfifo(tmp_path / "root" / "pipe")
    with (tmp_path / "out").open("w+b") as file, pytest.raises(BadInput, match="can pack only files"):
        write_squashfs(tmp_path / "root", file, 1)
