"""Which folders of a machine are its distribution's; pure."""


def is_system(folder: str) -> bool:
    """Tell whether libraries in a folder are the distribution's: a container has such folders of its own."""
    below = any(folder == s or folder.startswith(f"{s}/") for s in ("/usr", "/lib", "/lib64"))
    return below and not f"{folder}/".startswith("/usr/local/")
