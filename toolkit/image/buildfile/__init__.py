"""Read a Dockerfile or an Apptainer definition file, and predict the contents of its image before the
build.

``builds/emit.py`` does the opposite: it writes a Dockerfile from a lock file.
"""
