"""Start Jupyter only for its owner: ``python3 notebook.py JOB_FOLDER FOLDER [PACKAGES]``, inside an image.

Jupyter listens on a free port of the node's address 127.0.0.1, and accepts only clients that send a token.
The token is in the file ``token`` in the job's folder, which only you can read; no command line, variable or
log contains the token. The file ``notebook.json`` in the job's folder contains the port. FOLDER is the root
folder of Jupyter's file browser. PACKAGES is a folder that ``pip install --target`` filled, for an image
without Jupyter.

The script needs Python 3.8 or later, and Jupyter. The script exits with status 3 if the image has no Jupyter.
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
"""The modules and classes of Jupyter programs. The script starts the first program that the image has."""

_EXTENSIONS = ("jupyter_server_terminals", "jupyter_lsp", "notebook_shim")
_MOST_SECONDS = 300


def main(directory: str, folder: str, packages: str = "") -> int:
    """Run Jupyter until the job ends; return the exit status, which is 3 if the image has no Jupyter."""
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
    # Jupyter usually reads its list of extensions from settings files. This script disables settings files,
    # so it names the extensions.
    extensions = (name for name in _EXTENSIONS if importlib.util.find_spec(name))
    words += [f"jpserver_extensions={name}=True" for name in extensions]
    # Allow root: a user who is root in the container has no additional rights outside the container.
    program.launch_instance(argv=[f"--ServerApp.{word}" for word in (*words, "allow_root=True")])
    return 0


def _take(packages: pathlib.Path) -> None:
    """Let Jupyter and its kernels import the packages of a folder and find the packages' data files."""
    sys.path.insert(0, str(packages))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
    share = packages / "share" / "jupyter"
    os.environ["JUPYTER_PATH"] = str(share)
    if (share / "lab").is_dir():
        os.environ["JUPYTERLAB_DIR"] = str(share / "lab")


def _program(name: tuple[str, str]) -> Any:  # noqa: ANN401 - a class that only the image contains
    module, program = name
    try:
        return getattr(importlib.import_module(module), program)
    except (ImportError, AttributeError):
        return None


def _settle(job: pathlib.Path) -> None:
    """Make Jupyter ignore settings files, because a settings file may give other users access."""
    own = job / "jupyter"
    own.mkdir(exist_ok=True)
    tempfile.tempdir = str(own)  # Jupyter creates an empty settings folder here
    os.environ.update(
        JUPYTER_TOKEN_FILE=str(job / "token"),
        JUPYTER_NO_CONFIG="1",
        JUPYTER_RUNTIME_DIR=str(own / "runtime"),
        JUPYTER_DATA_DIR=str(own / "data"),
    )
    os.environ.pop("JUPYTER_TOKEN", None)


def _shell() -> str:
    """Return the shell for terminals. By default Jupyter starts a login shell, which changes PATH."""
    return shutil.which("bash") or "/bin/sh"


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def _tell(job: pathlib.Path) -> None:
    """Wait until Jupyter listens, then write its host and port, because Jupyter may choose another port."""
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
