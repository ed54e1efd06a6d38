"""A cluster that a killed run of the tests left behind."""

import contextlib

from toolkit.cluster import virtual
from toolkit.errors import Missing


def remove_leftover(name):
    """Take down a cluster whose keys are gone with the folder of the run that made it."""
    try:
        virtual.status(name)
        virtual.find(name)
    except Missing:
        with contextlib.suppress(Missing):
            virtual.down(name)
