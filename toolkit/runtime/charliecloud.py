"""Charliecloud: ``ch-run`` starts a command in an image folder or a squashfs image.

Source: ch-run(1) of Charliecloud 0.38. ch-run passes all environment variables into the container, and
mounts the node's ``/dev``, ``/proc``, ``/sys`` and ``/tmp``. ``--join`` puts the ranks of a node into one
user namespace.
"""

from toolkit.runtime.described import Described, option

RUNTIME = Described(
    NAMES=("ch-run",),
    FORMATS=frozenset({"squashfs", "sandbox"}),
    # Without --write-fake, ch-run can bind a path only to a folder that exists in the image.
    options=("--write-fake",),
    SET_ENV="--set-env=",
    setuid=False,
    bind=option("--bind="),
    name=lambda image: (image, "--"),
    folder=lambda folder: (f"--cd={folder}",),
    HIDES={
        "tmp": frozenset({"--private-tmp", "-t"}),
        "identity": frozenset({"--uid=0"}),
        "environment": frozenset({"--unset-env=*"}),
    },
    SHARES={"home": "--home"},
    SPLITS=True,
    MEASURED=True,
)
