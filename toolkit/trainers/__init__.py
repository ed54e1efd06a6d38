"""Trainers: they run inside images, so they import nothing of the rest of toolkit.

``mnist`` and its successors describe a model, a data set and defaults; ``training`` is one run of them,
``course`` its epochs, ``loop`` the computation, ``world`` the ways to distribute it, ``metrics`` the file
that it writes (see ``docs/metrics.md``), ``checkpoint`` what it goes on from. ``preflight`` checks ranks,
network and nodes alone. TensorFlow, Horovod and mpi4py are imported where they are first used.
"""
