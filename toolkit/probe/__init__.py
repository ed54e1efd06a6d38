"""Ask a machine in one round trip, and read what it said into facts."""
