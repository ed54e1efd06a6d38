"""Read a Dockerfile or an Apptainer definition file, and predict the contents of its image before the
build.

``builds/emit.py`` writes the Dockerfile of a lock.
"""
