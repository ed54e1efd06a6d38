"""Data sets of the trainers: file readers, image crops, and the assignment of samples to ranks."""
