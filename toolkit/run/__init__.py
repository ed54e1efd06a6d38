"""Access to other programs and machines: processes, SSH, Docker, networks, and Apptainer."""
