"""Find the libraries that a program in an image would load, without running the program."""
