"""Conversion, size and start of a SIF beside those that plain ``apptainer build`` gives of the same image."""
