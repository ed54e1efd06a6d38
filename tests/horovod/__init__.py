"""Build Horovod with each framework, and check that two ranks get the same weights as one process."""
