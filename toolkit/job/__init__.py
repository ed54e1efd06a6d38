"""Launch a job: merge the settings, read the image, probe the host, and write and submit the job script.

No module of this package writes to the terminal.
"""
