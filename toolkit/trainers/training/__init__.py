"""Run a trainer: epochs, checkpoints, metrics, and requests to stop."""
