"""Probe a machine in one round trip, and convert its answer to facts."""
