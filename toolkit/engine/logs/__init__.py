"""Explain job output: find the line that reports the fault, and explain the fault."""
