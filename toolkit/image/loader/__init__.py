"""What a program in an image would load, and the variables that decide it; nothing is run."""
