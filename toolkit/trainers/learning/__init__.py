"""Everything that determines how a training updates the weights: learning rates, optimizers, precision, and
the compiled training step.
"""
