"""The Python API of toolkit: inspect images, probe clusters, predict launches, launch and follow jobs.

A function that has the name of a command does what the command does, and uses the command's settings and
checks. The functions print nothing and never exit the process. If a function fails, it raises an error of
:mod:`toolkit.errors`. An error message about an argument names the command-line option: for example,
``--nodes`` for ``nodes``.

Many functions accept an argument ``tell``: an object that receives progress messages. Some functions,
such as :func:`follow`, also pass the job's output to ``tell``. Without ``tell``, toolkit discards the
messages and the output.

This package is fast to import, because each function imports the modules that it needs only when you call it.
"""

from toolkit import errors
from toolkit.app.prediction import doctor, inspect, load_facts, probe
from toolkit.app.results import explain, report, report_studies, report_sweep
from toolkit.app.running import (
    cancel,
    failure,
    fetch,
    follow,
    job,
    jobs,
    launch,
    logs,
    refresh,
    resume,
    script,
    wait,
)  # fmt: skip
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import OutputExplanation
from toolkit.model.job import JobRecord
from toolkit.model.jobfile import LaunchOptions
from toolkit.model.prediction import Mode, Verdict
from toolkit.model.progress import Silent, Tell

__all__ = [
    "HostFacts", "ImageFacts", "JobRecord", "LaunchOptions", "Mode", "OutputExplanation", "Silent", "Tell",
    "Verdict", "cancel", "doctor", "errors", "explain", "failure", "fetch", "follow", "inspect", "job",
    "jobs", "launch", "load_facts", "logs", "probe", "refresh", "report", "report_studies", "report_sweep",
    "resume", "script", "wait",
]  # fmt: skip
