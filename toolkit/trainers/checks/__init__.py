"""The checks that ``preflight`` makes of nodes, ranks and the links between them, without TensorFlow."""
