"""The checks that ``preflight`` makes before a training: on nodes, ranks and the network between nodes. These
checks do not need TensorFlow.
"""
