"""Remove a cluster that a killed test run left behind."""

import contextlib

from toolkit.cluster import virtual
from toolkit.errors import Missing


def remove_leftover(name):
    """Remove the cluster ``name`` if its folder of keys no longer exists, as after a killed test run."""
    try:
        virtual.status(name)
        virtual.find(name)
    except Missing:
        with contextlib.suppress(Missing):
            virtual.down(name)
