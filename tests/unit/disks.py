"""Simulate a full disk."""

import errno
import os

import pytest


def fill(patch: pytest.MonkeyPatch) -> None:
    taken, write = [], os.write

    def full(number: int, content: bytes) -> int:
        if taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken.append(number)
        return write(number, content[:2])

    patch.setattr("toolkit.files.os.write", full)
