"""How fast the trainers train, beside what else one would do; ``make bench-train``."""
