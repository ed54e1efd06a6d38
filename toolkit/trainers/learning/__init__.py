"""How weights change: learning rates, optimizers, precision, and the compiled step that they become."""
