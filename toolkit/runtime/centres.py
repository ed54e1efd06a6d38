"""Container runtimes that computing centres develop: podman-hpc and Shifter of NERSC, and Sarus of CSCS.

toolkit's developers have run neither podman-hpc nor Shifter nor Sarus. Sources: NERSC/podman-hpc:README.md
(podman-hpc wraps podman; ``podman-hpc load`` and ``migrate`` put an image into podman-hpc's store;
podman-hpc's own modules add options such as ``--gpu``). NERSC/shifter:doc/bash/shifter.rst (``--image``,
``--volume``, ``--workdir``; the image gateway stores images). eth-cscs/sarus:doc/user/user_guide.rst (``sarus
load my.tar my``, ``--mount=type=bind``, ``--workdir``).
"""

import posixpath

from toolkit.runtime.described import Described, option

_ARCHIVES = frozenset({"docker-archive", "oci-archive"})


def _name(image: str) -> str:
    """Return the name of an archive in the centre's image store: the archive's file name in lower case,
    without the suffix.
    """
    return posixpath.splitext(posixpath.basename(image))[0].lower()


def _mounts(binds: tuple[tuple[str, str, str], ...]) -> tuple[str, ...]:
    """Return Sarus's options for bind mounts. The options omit ``ro``, because Sarus makes every mount
    writable.
    """
    return tuple(f"--mount=type=bind,source={source},destination={target}" for source, target, _ in binds)


PODMAN_HPC = Described(
    NAMES=("podman-hpc",),
    FORMATS=_ARCHIVES,
    start=("run", "--rm"),
    options=("--env-host", "--network=host", "--ipc=host", "--pid=host", "--userns=keep-id"),
    GPUS=("--gpu",),
    bind=option("--volume="),
    name=lambda image: (f"localhost/{_name(image)}:latest",),
    folder=lambda folder: (f"--workdir={folder}",),
)

SHIFTER = Described(
    NAMES=("shifter",),
    BY_ROOT=True,
    FORMATS=_ARCHIVES,
    bind=option("--volume="),
    name=lambda image: (f"--image=docker:{_name(image)}:latest",),
    folder=lambda folder: (f"--workdir={folder}",),
)

SARUS = Described(
    NAMES=("sarus",),
    BY_ROOT=True,
    FORMATS=_ARCHIVES,
    start=("run",),
    bind=_mounts,
    name=lambda image: (f"load/library/{_name(image)}:latest",),
    folder=lambda folder: (f"--workdir={folder}",),
)
