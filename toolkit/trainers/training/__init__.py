"""The parts of a trainer's run: epochs, checkpoints, metrics, and requests to stop."""
