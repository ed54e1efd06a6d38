"""Test when a job copies its image to each node, and how a node makes and removes the copy."""

import hashlib
import os
import shutil

import msgspec
import pytest

from tests.unit.launch.examples import SPEC, SRUN
from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.launch.jobscript.broadcast import decide_broadcast
from toolkit.launch.jobscript.script import job_script
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

HOUR = 3600


def of(**changes):
    return msgspec.structs.replace(SPEC, **changes)


@every_row(
    ("changes", "runtime", "copies"),
    [
        ({"nodes": 4}, "apptainer", False),
        ({"nodes": 5}, "apptainer", True),
        ({"nodes": 5, "broadcast": "off"}, "apptainer", False),
        ({"nodes": 1, "broadcast": "on"}, "singularity", True),
        ({"nodes": 9, "broadcast": "on", "elastic": True}, "apptainer", False),
        ({"nodes": 9, "broadcast": "on"}, "podman", False),
    ],
)
def test_the_choice(changes, runtime, copies):
    found, why = decide_broadcast(of(**changes), None, runtime)
    assert found is copies
    assert why


def test_the_script_starts_from_the_copies():
    env = "/work/ada/my.env"
    bind = f"{env}:/opt/toolkit-env:image-src=/,ro"
    spec = of(env_image=env, binds=(*SPEC.binds, bind), broadcast="on")
    plan = msgspec.structs.replace(SRUN, binds=spec.binds)
    copies = {spec.image: (f"sha256:{'ab' * 32}", 1000), env: (f"sha256:{'cd' * 32}", 5)}
    text = job_script(spec, plan, "x", "apptainer", None, None, (), copies)
    launch = text[text.rindex("apptainer exec") :]
    assert '--bind "$env_file":/opt/toolkit-env:image-src=/,ro' in launch
    assert '"$image_file"' in launch
    assert spec.image not in launch
    assert (
        f'sh ./toolkit-broadcast.sh "$1" /tmp/toolkit-"$(id -u)" 40960 "$SLURM_JOB_ID" {"ab" * 32} 1000'
        in text
    )
    assert LocalRunner().run(Command(("bash", "-n"), stdin=text.encode())).ok
    assert "toolkit-broadcast.sh" not in job_script(spec, plan, "x", "apptainer")


@pytest.fixture
def node(tmp_path):
    """Return a function that runs a step of ``broadcast.sh`` and returns exit status, output and errors."""
    folder = tmp_path / "copies"

    def call(step, *files, most=1000, job="7"):
        words = [word for content in files for word in (sha(content), str(len(content)))]
        script = str(shipped_folder("slurm") / "broadcast.sh")
        done = LocalRunner().run(Command(("sh", script, step, str(folder), str(most), job, *words)))
        return done.status, done.text, done.errors

    call.folder = folder
    return call


def sha(content):
    return hashlib.sha256(content).hexdigest()


def sent(node, content, sends=None, job="7"):
    (node.folder / f".{sha(content)}.{job}.part").write_bytes(content if sends is None else sends)


def names(node):
    return sorted(path.name for path in node.folder.iterdir() if path.name != ".lock")


IMAGE, ENV = b"image" * 1000, b"packages"


def test_what_is_absent_is_sent_once(node):
    assert node("look", IMAGE, ENV)[:2] == (0, f"{sha(IMAGE)}\n{sha(ENV)}\n")
    sent(node, IMAGE)
    sent(node, ENV)
    assert node("keep", IMAGE, ENV)[0] == 0
    assert names(node) == sorted([sha(IMAGE), sha(ENV)])
    assert node("look", IMAGE, ENV)[:2] == (0, "")
    assert node.folder.stat().st_mode & 0o077 == 0


@every_row("sends", [IMAGE[:-1], b"x" * len(IMAGE), b""])
def test_a_copy_with_other_bytes_is_removed(node, sends):
    node("look", IMAGE)
    sent(node, IMAGE, sends)
    status, _, errors = node("keep", IMAGE)
    assert status == 1
    assert "is not the file that was sent" in errors
    assert names(node) == []


def test_a_copy_that_never_came_is_told(node):
    node("look", IMAGE)
    assert node("keep", IMAGE)[0] == 1


def test_two_jobs_on_one_node_keep_one_copy(node):
    for job in ("7", "8"):
        assert node("look", IMAGE, job=job)[1]
        sent(node, IMAGE, job=job)
    assert [node("keep", IMAGE, job=job)[0] for job in ("7", "8")] == [0, 0]
    assert names(node) == [sha(IMAGE)]


def test_old_copies_make_room_and_new_ones_do_not(node):
    big, bigger = os.urandom(600_000), os.urandom(700_000)
    node("look", big)
    sent(node, big)
    node("keep", big)
    status, _, errors = node("look", bigger, most=1)
    assert status == 1
    assert "has no room for" in errors
    assert names(node) == [sha(big)]
    old = node.folder.stat().st_mtime - 2 * HOUR
    os.utime(node.folder / sha(big), (old, old))
    assert node("look", bigger, most=1)[:2] == (0, f"{sha(bigger)}\n")
    assert names(node) == []


def test_parts_of_jobs_that_ended_are_removed(node):
    node("look", IMAGE)
    sent(node, IMAGE, job="1")
    old = node.folder.stat().st_mtime - 2 * HOUR
    os.utime(node.folder / f".{sha(IMAGE)}.1.part", (old, old))
    node("look", IMAGE)
    assert names(node) == []


def test_a_disk_without_room_is_told(node, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    df = tmp_path / "bin" / "df"
    df.write_text("#!/bin/sh\necho 'File system 1024-blocks Used Available'\necho 'disk 10 5 5'\n")
    df.chmod(0o755)
    monkeypatch.setenv("PATH", f"{df.parent}{os.pathsep}{os.environ['PATH']}")
    status, _, errors = node("look", IMAGE)
    assert status == 1
    assert "has no room for" in errors


def test_memory_is_not_used_as_a_disk(node, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    stat = tmp_path / "bin" / "stat"
    stat.write_text('#!/bin/sh\n[ "$1" = -f ] && echo tmpfs || exec /usr/bin/stat "$@"\n')
    stat.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stat.parent}{os.pathsep}{os.environ['PATH']}")
    status, _, errors = node("look", IMAGE)
    assert status == 1
    assert "is in memory" in errors


def test_a_folder_of_another_user_is_refused(node):
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    node.folder.mkdir()
    shutil.chown(node.folder, 12345)
    status, _, errors = node("look", IMAGE)
    assert status == 1
    assert "belongs to another user" in errors
