"""The functions that find another line to which the root line (the first line that reports the failure)
refers, in the order in which toolkit calls them.
"""

from collections.abc import Callable, Sequence

from toolkit.engine.logs.clues import Clue
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.lastwords import said_before_abort
from toolkit.engine.logs.leads.blocks import message_around, message_before
from toolkit.engine.logs.leads.builds import error_of_build, error_of_step
from toolkit.engine.logs.leads.children import exception_of_child
from toolkit.engine.logs.leads.complaints import complaint_before_abort
from toolkit.engine.logs.leads.downloads import failed_request_before
from toolkit.engine.logs.leads.gpuwords import gpu_error_before
from toolkit.engine.logs.leads.helptext import first_sentence
from toolkit.engine.logs.leads.initbox import failed_part, message_of_pmix
from toolkit.engine.logs.leads.lostworkers import death_of_worker
from toolkit.engine.logs.leads.reasons import (
    innermost_call,
    innermost_level,
    message_of_graph,
    reason_of_refusal,
    reason_of_task,
    step_of_pyxis,
)
from toolkit.engine.logs.leads.summaries import error_of_package, reason_near_summary
from toolkit.engine.logs.topics import message_below, quoted_fault

LEADS: tuple[Callable[[Output, Clue, Sequence[Clue]], Clue | None], ...] = (
    said_before_abort,
    complaint_before_abort,
    error_of_build,
    error_of_step,
    failed_request_before,
    quoted_fault,
    message_below,
    gpu_error_before,
    first_sentence,
    message_around,
    message_before,
    failed_part,
    message_of_pmix,
    innermost_level,
    innermost_call,
    message_of_graph,
    reason_of_refusal,
    reason_of_task,
    step_of_pyxis,
    error_of_package,
    reason_near_summary,
    death_of_worker,
    exception_of_child,
)
"""Each function takes the output, the root line, and the lines that report causes. If a function returns a
line, this line is the root line for the functions after it. ``None`` means that the root line remains.
"""
