"""The text of a job script: launch line, checks, wrapper."""
