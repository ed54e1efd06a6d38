"""Names of container runtimes that ``--runtime`` accepts; :mod:`toolkit.runtime` has a module for each
runtime.
"""

NAMES = (
    "apptainer", "singularity", "podman", "ch-run", "ce", "pyxis", "enroot", "podman-hpc", "shifter", "sarus",
)  # fmt: skip
