"""Measure speed and memory of `toolkit explain` on long job output."""
