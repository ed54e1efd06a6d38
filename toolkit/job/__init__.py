"""Launch a job: merge its settings, read image and host, plan the launch, write and submit the job script.

No module of this package writes to the terminal.
"""
