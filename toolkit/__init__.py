"""Build, check and launch containers for training on supercomputers.

Builds copy this file into training images beside :mod:`toolkit.trainers`, so it imports nothing.
"""

__version__ = "0.3.0"
DISTRIBUTION = "hpc-container-toolkit"
"""Name of the package on a Python package index; the import package and the command are ``toolkit``."""
