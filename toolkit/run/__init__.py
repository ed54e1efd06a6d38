"""Access to processes here or over SSH, the Docker engine, networks, and Singularity/Apptainer."""
