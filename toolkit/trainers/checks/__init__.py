"""The checks of nodes, ranks and network that ``toolkit.trainers.preflight`` makes before a training. The
checks do not need TensorFlow.
"""
