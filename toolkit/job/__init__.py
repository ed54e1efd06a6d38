"""The pipeline of a job: merge settings, read image and host, plan the launch, write and submit the script.

No module of this package prints.
"""
