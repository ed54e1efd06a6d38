"""Predict how the activation of an environment (conda, Python or Intel) changes PATH and other variables.

toolkit does not run the commands that activate the environment.
"""

import re
from dataclasses import dataclass

from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree
from toolkit.program.shellwords import UNTOLD

_MOST = 1 << 16
_SOURCING = frozenset((".", "source"))
_HOOK = re.compile(r"(/.*)/etc/profile\.d/(?:conda|mamba)\.sh\Z")
_SETVARS = re.compile(r"(/.*)/setvars\.sh\Z")
_INTEL_MPI = re.compile(r"(/.*)/(?:env/vars\.sh|bin(?:64)?/mpivars\.sh)\Z")
_INTEL_LIBRARIES = ("lib", "lib/release", "libfabric/lib", "opt/mpi/libfabric/lib")
_INTEL_PROVIDERS = ("opt/mpi/libfabric/lib/prov", "libfabric/lib/prov", "lib")
"""The folders with libfabric's providers (plugins) below Intel MPI's prefix. Intel MPI 2021.15's script
env/vars.sh adds only the first existing folder of this list to FI_PROVIDER_PATH. The script adds all existing
folders in ``_INTEL_LIBRARIES`` to LD_LIBRARY_PATH.
"""
_ACTIVATE = re.compile(r"(/.*)/bin/activate\Z")


@dataclass(frozen=True, slots=True)
class Activation:
    """An activated environment: the prefix of its installation, the name of the variable that contains the
    prefix, and the paths of the scripts that the activation sources.
    """

    prefix: str
    variable: str
    scripts: tuple[str, ...] = ()
    search_folders: tuple[tuple[str, str], ...] = ()
    """Pairs (variable, folder). The activation inserts each folder at the start of the variable."""


def conda_hook_root(tree: FileTree, words: list[str]) -> str | None:
    """Return the root folder of the conda installation whose conda.sh or mamba.sh a command sources.

    ``words`` are the words of the command. The result is None for any other command.
    """
    match = _HOOK.match(words[1]) if len(words) == 2 and words[0] in _SOURCING else None
    return match[1] if match and UNTOLD not in words[1] and files.is_file(tree, words[1]) else None


def read_activation(tree: FileTree, words: list[str], root: str) -> Activation | None:
    """Return the environment that a command activates. The result is None if the command activates no
    environment, or if toolkit cannot predict the effect.

    ``words`` are the words of the command. ``root`` is the root folder of the conda installation whose
    conda.sh or mamba.sh an earlier command sourced; empty if no command did.
    """
    if any(UNTOLD in word for word in words):
        return None
    first, *rest = words
    if first in _SOURCING and rest and (intel := _read_intel(tree, rest[0])):
        return intel
    if first in _SOURCING and rest and (match := _ACTIVATE.match(rest[0])):
        if len(rest) == 1 and files.is_file(tree, f"{match[1]}/pyvenv.cfg"):
            return Activation(match[1], "VIRTUAL_ENV")
        root, rest = match[1], ["activate", *rest[1:]]
    elif first not in {"conda", "mamba"}:
        return None
    if not root or rest[:1] != ["activate"] or len(rest) > 2:
        return None
    name = rest[1] if len(rest) == 2 else "base"
    prefix = root if name == "base" else name if name.startswith("/") else f"{root}/envs/{name}"
    # `conda env config vars set` writes environment variables to conda-meta/state.
    settings = files.text(tree, f"{prefix}/conda-meta/state", _MOST) or ""
    if not files.names(tree, f"{prefix}/conda-meta") or "PATH" in settings:
        return None
    # conda sources the scripts in activate.d in alphabetical order (conda/conda:conda/activate.py).
    return Activation(prefix, "CONDA_PREFIX", tuple(files.glob(tree, f"{prefix}/etc/conda/activate.d/*.sh")))


def _read_intel(tree: FileTree, script: str) -> Activation | None:
    """Return the environment that Intel oneAPI's setvars.sh, or Intel MPI's vars.sh or mpivars.sh, activates.

    toolkit derives the environment from the folders of the installation. It cannot evaluate these scripts,
    because they consist of functions and loops. The result is None for any other script, or if the
    image does not contain Intel MPI's library.
    """
    whole, own = _SETVARS.match(script), _INTEL_MPI.match(script)
    prefix = f"{whole[1]}/mpi/latest" if whole else own[1] if own else ""
    if not prefix or not files.is_file(tree, script):
        return None
    there = [folder for folder in _INTEL_LIBRARIES if files.names(tree, f"{prefix}/{folder}")]
    if not any(name.startswith("libmpi.so") for of in there for name in files.names(tree, f"{prefix}/{of}")):
        return None
    providers = [folder for folder in _INTEL_PROVIDERS if files.names(tree, f"{prefix}/{folder}")]
    others = sorted(set(files.names(tree, whole[1])) - {"mpi"}) if whole else []
    beside = [f"{whole[1]}/{name}/latest/lib" for name in others] if whole else []
    searched = [("LD_LIBRARY_PATH", folder) for folder in beside if files.names(tree, folder)]
    searched += [("LD_LIBRARY_PATH", f"{prefix}/{folder}") for folder in there]
    searched += [("FI_PROVIDER_PATH", f"{prefix}/{folder}") for folder in providers[:1]]
    return Activation(prefix, "I_MPI_ROOT", search_folders=tuple(searched))
