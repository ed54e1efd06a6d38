"""Names of container runtimes for ``--runtime``; the modules are in :mod:`toolkit.runtime`."""

NAMES = (
    "apptainer", "singularity", "podman", "ch-run", "ce", "pyxis", "enroot", "podman-hpc", "shifter", "sarus",
)  # fmt: skip
