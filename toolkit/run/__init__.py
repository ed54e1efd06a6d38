"""Access to other programs and machines: processes, SSH, Docker, registries, networks, gpg,
and Apptainer.
"""
