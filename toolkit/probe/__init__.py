"""Probe a machine in one round trip, and read its answer into facts."""
