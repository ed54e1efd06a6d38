"""Trainers: they run inside images, so they import nothing of the rest of toolkit.

``mnist`` and its successors describe a model, a data set and defaults; ``training`` is the loop,
``world`` the ways to distribute it, ``metrics`` the file that it writes (see ``docs/metrics.md``).
``preflight`` checks MPI alone. TensorFlow, Horovod and mpi4py are imported where they are first used.
"""
