"""Start a program on several simulated nodes at once, from a virtual environment, a SIF or another place.

Each node mounts the slow file system.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.start.limits import Server
from tests.benchmarks.start.places import SITE, VENV, offset_of
from tests.benchmarks.start.replay import Operation

PROGRAM = """
import torch
torch.set_num_threads(1)
torch.nn.Linear(8, 2)(torch.ones(4, 8)).sum().backward()
print("step", flush=True)
import os
os._exit(0)
"""
SERVER = Server()
PLACES = ("venv", "conda", "sif", "sif-copy", "env", "env-sorted", "env-copy")
_OUTSIDE = "chroot {root} /usr/bin/env PYTHONDONTWRITEBYTECODE=1 "
_PYTHON = _OUTSIDE + f"PYTHONPATH=/venv/{SITE} /usr/bin/python3.11 -c {{program}}"
_SIF = _OUTSIDE.format(root="{node}/sif") + f"/{VENV}/bin/python -c {{program}}"
_COPY = "cp {mount}/{file} {node}/{file} && sha256sum {node}/{file} > {node}/sum"
_SCRIPTS = {
    "walk": ("find {mount}/venv -size +1G", "echo step"),
    "venv": ("mount --bind {mount}/venv {root}/venv", _PYTHON),
    "conda": (
        "mount --bind {mount}/conda {root}/conda",
        _OUTSIDE + f"PYTHONHOME=/conda PYTHONPATH=/conda/{SITE} /conda/bin/python3.11 -c {{program}}",
    ),
    "sif": ("squashfuse_ll -o offset={offset} {mount}/image.sif {node}/sif", _SIF),
    "sif-copy": (
        _COPY.replace("{file}", "image.sif"),
        "squashfuse_ll -o offset={offset} {node}/image.sif {node}/sif",
        _SIF,
    ),
    "env": ("squashfuse_ll {mount}/env.sqsh {root}/venv", _PYTHON),
    "env-sorted": ("squashfuse_ll {mount}/sorted.sqsh {root}/venv", _PYTHON),
    "env-copy": (
        _COPY.replace("{file}", "env.sqsh"),
        "squashfuse_ll {node}/env.sqsh {root}/venv",
        _PYTHON,
    ),
}
WALK = "walk"
"""Name of a program that looks up all files of the virtual environment, and computes almost nothing."""
_LIMIT = 400.0


@dataclass(frozen=True, slots=True)
class Run:
    """Result of a start: the seconds to the first step on each node, and the file operations of the first
    node.
    """

    seconds: tuple[float, ...]
    begun: float
    trace: tuple[Operation, ...]


def run(place: str, work: Path, nodes: int, server: Server = SERVER) -> Run:
    with (
        tempfile.TemporaryDirectory(dir=work, prefix="nodes.") as name,
        _mounted(work, Path(name), nodes, server) as mounts,
    ):
        begun = time.monotonic()
        started = [_start(place, work, Path(name), number, mount) for number, mount in enumerate(mounts)]
        ended = [_first_step(one, begun) for one in started]
        for one in started:
            one.wait(_LIMIT)
        _unmount([*mounts, *(Path(name) / f"node{n}" / "sif" for n in range(nodes))])
        file = Path(name) / "traces" / "0.json"
        deadline = time.monotonic() + 30
        while not file.is_file() and time.monotonic() < deadline:
            time.sleep(0.05)
        trace = tuple((b, e, kind, size) for b, e, kind, size in json.loads(file.read_text()))
    return Run(tuple(ended), begun, trace)


@contextmanager
def _mounted(work: Path, here: Path, nodes: int, server: Server) -> Iterator[list[Path]]:
    mounts = [here / f"mount{number}" for number in range(nodes)]
    for path in (*mounts, here / "traces", *(here / f"node{n}" / "sif" for n in range(nodes))):
        path.mkdir(parents=True)
    program = (sys.executable, "-m", "tests.benchmarks.start.slowfs", str(server.threads))
    folders = map(str, (work / "shared", here / "traces", *mounts))
    mounting = subprocess.Popen([*program, *folders], cwd=Path(__file__).parents[3])
    try:
        while not all(os.path.ismount(mount) for mount in mounts):
            time.sleep(0.05)
            if mounting.poll() is not None:
                raise SystemExit("the slow file system did not start")
        yield mounts
        mounting.wait(60)
    finally:
        _unmount(mounts)
        mounting.terminate()


def _start(place: str, work: Path, here: Path, number: int, mount: Path) -> "subprocess.Popen[str]":
    node = here / f"node{number}"
    values: dict[str, Any] = {
        "mount": mount,
        "root": work / "root",
        "node": node,
        "offset": offset_of(work / "shared" / "image.sif"),
        "program": shlex.quote(PROGRAM),
    }
    top = values["node"] / "sif" if place.startswith("sif") else values["root"]
    *before, program = _SCRIPTS[place]
    devices = (f"mount --bind /dev {top}/dev", f"mount -t proc proc {top}/proc")
    script = " && ".join(step.format(**values) for step in (*before, *devices, program))
    return subprocess.Popen(
        ["unshare", "-m", "-p", "--fork", "--kill-child", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
    )


def _first_step(started: "subprocess.Popen[str]", begun: float) -> float:
    assert started.stdout is not None
    line = started.stdout.readline()
    if line != "step\n":
        raise SystemExit(f"the program did not start: {line!r}")
    return time.monotonic() - begun


def _unmount(paths: list[Path]) -> None:
    for path in paths:
        if os.path.ismount(path):
            subprocess.run([shutil.which("umount") or "umount", "-l", str(path)], check=False)
