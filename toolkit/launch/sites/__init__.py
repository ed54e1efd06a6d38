"""A job and the partitions of its site; site profiles drafted and checked."""
