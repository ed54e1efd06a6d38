"""The Python API of toolkit: inspect images, probe clusters, predict launches, launch and follow jobs.

Each API function does the same as the command of the same name, with the same settings and checks. The
functions print nothing and never exit. Each error is a class of :mod:`toolkit.errors`, and the error's
message names the command's option, for example ``--nodes`` for ``nodes``. The object ``tell`` receives
progress messages, and the output of followed jobs. Without ``tell``, progress messages and output are
discarded.

Importing this package is fast, because each API function imports its modules only when you call it.
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
