"""The data of trainers: readers for each kind of file, image crops, and the assignment of samples."""
