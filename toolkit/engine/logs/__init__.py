"""Explain job output: find the line that reports the fault, and the meaning of the fault."""
