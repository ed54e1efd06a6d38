"""Read Dockerfiles and Apptainer definition files, and predict the contents of the image from their text."""
