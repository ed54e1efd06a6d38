"""Measure conversion, size and start of a SIF, compared with plain ``apptainer build`` of the same image."""
