"""Convert lines of the probe script's output to plain values (pure functions)."""
