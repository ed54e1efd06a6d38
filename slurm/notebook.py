"""Start Jupyter for its owner alone: ``python3 notebook.py JOB_FOLDER FOLDER [PACKAGES]``, inside an image.

It listens on 127.0.0.1 of the node, at a port that is free, and takes nobody who does not know the token:
what the file ``token`` in the job's folder holds, which only its owner can read. No command line, no variable
and no log has it. Where it listens is told by ``notebook.json`` in the job's folder. FOLDER is what it shows;
PACKAGES is a folder that ``pip install --target`` filled, for an image that has no Jupyter.

The file needs Python 3.8 and nothing but Jupyter. Exit code 3: there is no Jupyter.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
import time
from typing import Any

_PROGRAMS = (
    ("jupyterlab.labapp", "LabApp"),
    ("notebook.app", "JupyterNotebookApp"),
    ("jupyter_server.serverapp", "ServerApp"),
)
"""Whichever the image has, the one with most to it first."""

_EXTENSIONS = ("jupyter_server_terminals", "jupyter_lsp", "notebook_shim")
_MOST_SECONDS = 300


def main(directory: str, folder: str, packages: str = "") -> int:
    """Serve until the job ends, or return why not."""
    os.umask(0o077)
    job = pathlib.Path(directory)
    if packages:
        _take(pathlib.Path(packages))
    _settle(job)
    program = next((p for p in map(_program, _PROGRAMS) if p), None)
    if program is None:
        sys.stderr.write(f"notebook: there is no Jupyter in this image (Python {sys.version.split()[0]})\n")
        return 3
    threading.Thread(target=_tell, args=(job,), daemon=True).start()
    words = [
        "ip=127.0.0.1",
        f"port={_free_port()}",
        "port_retries=50",
        "open_browser=False",
        f"root_dir={folder}",
        f"terminado_settings={ {'shell_command': [_shell()]} }",
    ]
    # An extension is told of by files of settings, which are not read here.
    extensions = (name for name in _EXTENSIONS if importlib.util.find_spec(name))
    words += [f"jpserver_extensions={name}=True" for name in extensions]
    # Root is who a container's user may be, and harms nobody outside.
    program.launch_instance(argv=[f"--ServerApp.{word}" for word in (*words, "allow_root=True")])
    return 0


def _take(packages: pathlib.Path) -> None:
    """Make packages of a folder known here and to the kernels, with the files that belong to them."""
    sys.path.insert(0, str(packages))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
    share = packages / "share" / "jupyter"
    os.environ["JUPYTER_PATH"] = str(share)
    if (share / "lab").is_dir():
        os.environ["JUPYTERLAB_DIR"] = str(share / "lab")


def _program(name: tuple[str, str]) -> Any:  # noqa: ANN401 - a class that only the image knows
    module, program = name
    try:
        return getattr(importlib.import_module(module), program)
    except (ImportError, AttributeError):
        return None


def _settle(job: pathlib.Path) -> None:
    """Have Jupyter read no settings: those of an image or a home may open what has to be shut."""
    own = job / "jupyter"
    own.mkdir(exist_ok=True)
    tempfile.tempdir = str(own)  # where Jupyter then makes a folder of no settings
    os.environ.update(
        JUPYTER_TOKEN_FILE=str(job / "token"),
        JUPYTER_NO_CONFIG="1",
        JUPYTER_RUNTIME_DIR=str(own / "runtime"),
        JUPYTER_DATA_DIR=str(own / "data"),
    )
    os.environ.pop("JUPYTER_TOKEN", None)


def _shell() -> str:
    """Return the shell of terminals, one of the image; Jupyter would take a login shell, which sets PATH."""
    return shutil.which("bash") or "/bin/sh"


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def _tell(job: pathlib.Path) -> None:
    """Write where it listens, once it does; Jupyter may have had to take another port."""
    told = job / "jupyter" / "runtime" / f"jpserver-{os.getpid()}.json"
    for _ in range(_MOST_SECONDS * 5):
        try:
            port = json.loads(told.read_text())["port"]
        except (OSError, ValueError, KeyError):
            time.sleep(0.2)
            continue
        beside = job / ".notebook.json"
        beside.write_text(json.dumps({"host": socket.gethostname(), "port": port}))
        beside.replace(job / "notebook.json")
        return


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
