"""Probe a machine in one round trip, and convert the machine's answer to facts."""
