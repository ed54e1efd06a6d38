"""The trainers: programs that train a model inside an image. This package imports nothing from the rest of
toolkit.

Run a trainer as ``python -m toolkit.trainers.mnist``, or import the modules of this package in your own
trainer. The module of a trainer, such as ``mnist``, defines a model, a data set and the default options. The
module ``preflight`` checks ranks, network and nodes before a training. The module ``gloo`` starts ranks
without MPI. ``docs/metrics.md`` describes the output of a training. The modules import TensorFlow, Horovod
and mpi4py only when they first use these libraries.
"""

import time

BEGUN = time.time()
"""The time at which Python imported this package, in seconds since 1970."""
