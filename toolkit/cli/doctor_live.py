"""``toolkit doctor --live``: run a small job in a launch mode, and compare it with the prediction."""

from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
from toolkit.job.live import TrialRequest, try_modes
from toolkit.job.places import Where
from toolkit.report.live import live_page
from toolkit.report.progress import Progress


def command(asked: TrialRequest, where: Where, tell: Progress, *, as_json: bool) -> int:
    """Try the modes and print the result; return the exit status.

    Raises:
        ToolkitError: as :func:`toolkit.job.live.try_modes` says.
    """
    with tell:
        result, host = try_modes(asked, where, tell)
    if as_json:
        say_json(result, indent=True)
    else:
        say_text(live_page(result, host, style_of_stdout(), width_of_stdout()))
    return 0 if result.good else 1
