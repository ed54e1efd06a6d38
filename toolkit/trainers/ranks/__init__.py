"""Ranks of a training: this rank's number, the addresses of other ranks, devices, and sums over all ranks."""
