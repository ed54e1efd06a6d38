"""What ``preflight`` asks of nodes, ranks and the links between them; no TensorFlow in it."""
