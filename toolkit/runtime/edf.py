"""CSCS's Container Engine. ``srun --environment`` reads the image and its mounts from an environment
definition file (EDF).

toolkit's developers have not run the Container Engine. Sources in
eth-cscs/cscs-docs:docs/software/container-engine: run.md (``--environment`` accepts a path that starts with
``/`` or ``./``), edf.md (``image``, ``mounts``, ``workdir``, ``entrypoint``), resource-hook.md (hooks mount
libfabric and NCCL's plugin for Slingshot).
"""

import json
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.model.job import JobSpec
from toolkit.runtime.described import Described

FILE = "toolkit-image.toml"
"""The name of the environment definition file (EDF), which the job script writes to the job's folder."""


@dataclass(slots=True)
class ByFile(Described):
    """A runtime that reads the image's path and the mounts from an environment definition file."""

    def image(self, spec: JobSpec) -> tuple[str, ...]:
        """Return srun's option that names the environment definition file."""
        return (f"--environment={posixpath.join(spec.directory, FILE)}",)

    def definition(self, spec: JobSpec, binds: Iterable[str]) -> str:
        """Return the text of the environment definition file."""
        mounts = [bind if ":" in bind else f"{bind}:{bind}" for bind in dict.fromkeys(binds)]
        values = {
            "image": spec.image,
            "workdir": spec.workdir or spec.directory,
            "entrypoint": False,
            "mounts": mounts,
        }
        return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


CE = ByFile(
    NAMES=("ce",),
    BY_ROOT=None,
    FORMATS=frozenset({"squashfs"}),
    IN_LAUNCHER=True,
    bind=lambda binds: (),  # noqa: ARG005 - the file contains the binds
    name=lambda image: (image,),
    folder=lambda folder: (),  # noqa: ARG005 - the file contains the working directory
)
