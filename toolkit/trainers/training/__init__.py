"""One run of a trainer: its epochs, its checkpoints, its metrics, and what stops it."""
