"""Pairs of Horovod and a framework: each is built, and two ranks must learn what one process learns."""
