"""Names of container runtimes that ``--runtime`` accepts; the modules are in :mod:`toolkit.runtime`."""

NAMES = (
    "apptainer", "singularity", "podman", "ch-run", "ce", "pyxis", "enroot", "podman-hpc", "shifter", "sarus",
)  # fmt: skip
