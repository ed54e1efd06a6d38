"""Update the weights: learning rates, optimizers, precision, and the compiled training step."""
