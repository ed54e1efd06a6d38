"""Find the libraries that a program in an image would load, and the variables that affect this, without
running it."""
