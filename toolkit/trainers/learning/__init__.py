"""How weights change: learning rates, optimizers, precision, and the compiled step."""
