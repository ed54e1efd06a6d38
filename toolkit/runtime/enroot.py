"""Enroot alone, and as options of srun by the SPANK plugin pyxis; pure. Not run.

NVIDIA/enroot:doc/cmd/start.md (a squashfs image starts without ``enroot create``; ``--env`` passes one
variable); NVIDIA/enroot:doc/standard-hooks.md (a hook passes PMI and PMIx); NVIDIA/pyxis:README.md.
"""

from toolkit.runtime.described import Described, joined_binds, option

RUNTIME = Described(
    NAMES=("enroot",),
    FORMATS=frozenset({"squashfs"}),
    start=("start",),
    bind=option("--mount="),
    name=lambda image: (image,),
    # enroot has no option for the folder.
    folder=lambda folder: (),  # noqa: ARG005
)

PYXIS = Described(
    NAMES=("pyxis",),
    FORMATS=frozenset({"squashfs"}),
    IN_LAUNCHER=True,
    options=("--no-container-entrypoint", "--no-container-remap-root"),
    bind=joined_binds("--container-mounts=", ",", ":"),
    name=lambda image: (f"--container-image={image}",),
    folder=lambda folder: (f"--container-workdir={folder}",),
)
