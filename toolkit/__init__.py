"""Build, check and launch containers for training on supercomputers.

The build of a training image copies this file and :mod:`toolkit.trainers` into the image. This file imports
nothing, because the image has no part of toolkit except this file and :mod:`toolkit.trainers`.
"""

__version__ = "0.3.0"
DISTRIBUTION = "hpc-container-toolkit"
"""Name of the package on a package index such as PyPI. The import package and the command are ``toolkit``."""
