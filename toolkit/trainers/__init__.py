"""The trainers: programs that train a model inside an image. The trainers import nothing from the rest of
toolkit.

Run a trainer as ``python -m toolkit.trainers.mnist``, or import the modules of this package from your own
trainer. A module such as ``mnist`` defines a model, a data set and defaults (see the modules ``trainer`` and
``command``). ``preflight`` checks ranks, network and nodes; ``gloo`` starts ranks without MPI. The
subpackages are ``data``, ``models``, ``learning``, ``training`` (one run of a trainer), ``ranks``,
``strategies`` (how ranks share a training) and ``checks``. ``docs/metrics.md`` describes the output of a
training. The modules import TensorFlow, Horovod and mpi4py only when they first use these libraries.
"""

import time

BEGUN = time.time()
"""The time at which Python imported this package, in seconds since 1970."""
