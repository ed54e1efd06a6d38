"""What a program in an image would load, and the variables that decide on it; nothing is run."""
