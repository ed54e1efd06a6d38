"""The ranks of a training: a rank's number and devices, the addresses of other ranks, and sums over all
ranks.
"""
