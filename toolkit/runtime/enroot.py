"""Enroot: the command ``enroot``, and the options that the SPANK plugin pyxis adds to srun.

toolkit's developers have not run Enroot. Sources: NVIDIA/enroot:doc/cmd/start.md (a squashfs image starts
without ``enroot create``; ``--env`` passes one variable); NVIDIA/enroot:doc/standard-hooks.md (a hook makes
PMI and PMIx available in the container); NVIDIA/pyxis:README.md.
"""

from toolkit.runtime.described import Described, joined_binds, option

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
"""The variable that selects GPUs. Without this variable, enroot's hook 98-nvidia.sh mounts no GPU driver;
CUDA images set this variable.
"""

RUNTIME = Described(
    NAMES=("enroot",),
    GPUS=(f"--env={VISIBLE}=all",),
    FORMATS=frozenset({"squashfs"}),
    start=("start",),
    bind=option("--mount="),
    name=lambda image: (image,),
    # enroot has no option for the working directory.
    folder=lambda folder: (),  # noqa: ARG005
)

PYXIS = Described(
    NAMES=("pyxis",),
    # pyxis passes the environment variables of the job step to enroot's hook 98-nvidia.sh.
    GPUS=(f"--export=ALL,{VISIBLE}=all",),
    FORMATS=frozenset({"squashfs"}),
    IN_LAUNCHER=True,
    options=("--no-container-entrypoint", "--no-container-remap-root"),
    bind=joined_binds("--container-mounts=", ",", ":"),
    name=lambda image: (f"--container-image={image}",),
    folder=lambda folder: (f"--container-workdir={folder}",),
)
