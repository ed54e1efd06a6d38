"""A fault of a job that is visible before the job waits in the queue."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchFault:
    """A fault that would end the job, or keep it from starting, and how to fix it."""

    message: str
    fix: str
