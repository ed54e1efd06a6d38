"""Programs that train inside images. The trainers import nothing from the rest of toolkit.

Run a trainer as ``python -m toolkit.trainers.mnist``, or import these modules from your own trainer. Modules
such as ``mnist`` describe a model, a data set and defaults (``trainer``, ``command``). ``preflight`` checks
ranks, network and nodes; ``gloo`` starts ranks without MPI. The parts are in folders: ``data``, ``models``,
``learning``, ``training`` (one run of a trainer), ``ranks``, ``strategies`` (the ways to distribute it) and
``checks``. ``docs/metrics.md`` describes the output of a training. TensorFlow, Horovod and mpi4py are
imported where they are first used.
"""

import time

BEGUN = time.time()
"""When the interpreter had started, in seconds since 1970."""
