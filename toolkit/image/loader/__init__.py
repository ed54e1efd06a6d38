"""What a program in an image would load, and the variables that decide about it; nothing is run."""
