"""Compare the speed of the trainers with other ways to train; ``make bench-train``."""
