"""Many processes: this rank's number, the places of the others, the devices, and sums over all ranks."""
