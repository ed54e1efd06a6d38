"""Launch a job: merge the settings, read the image, probe the host, and write and submit the job script.

The modules of this package report messages through a ``Tell`` object, and do not write to the terminal.
"""
