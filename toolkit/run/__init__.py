"""Doors to the world: processes here or over SSH, the Docker engine, Singularity/Apptainer."""
