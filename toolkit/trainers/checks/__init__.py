"""The checks of ``preflight`` on nodes, ranks and the network between nodes. They do not need TensorFlow."""
