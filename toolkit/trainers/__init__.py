"""Trainers: they run inside images, so they import nothing of the rest of toolkit.

What lies here is run (``python -m toolkit.trainers.mnist``) or made use of by trainers of one's own:
``mnist`` and its like describe a model, a data set and defaults (``trainer``, ``command``);
``preflight`` checks ranks, network and nodes; ``gloo`` starts ranks without MPI. The parts lie in folders:
``data``, ``models``, ``learning``, ``training`` (one run of a trainer), ``ranks``, ``strategies`` (the ways
to distribute it) and ``checks``. What a training writes is in ``docs/metrics.md``. TensorFlow, Horovod and
mpi4py are imported where they are first used.
"""
