"""Which folders of a machine are its distribution's, and what lies below which; pure."""

_OWN = ("/usr", "/lib", "/lib64")
_LOCAL = ("/usr/local", "/usr/local/lib", "/usr/local/lib64")
"""What an image has of its own as well: to mount the host's would hide it."""


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path is a folder or lies below it, by their text alone."""
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def is_system(folder: str) -> bool:
    """Tell whether libraries in a folder are the distribution's: a container has such folders of its own."""
    if folder.rstrip("/") in _LOCAL:
        return True
    return any(is_below(folder, own) for own in _OWN) and not is_below(folder, "/usr/local")
