"""The checks of ``preflight`` on nodes, ranks and the network between nodes. These checks do not need
TensorFlow.
"""
