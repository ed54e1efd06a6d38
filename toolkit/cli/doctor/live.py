"""``toolkit doctor --live``: run a small job with an image, and compare the result with the prediction."""

from pathlib import Path

from toolkit.cli.doctor.options import DoctorOptions
from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
from toolkit.image.startable import check_startable
from toolkit.job.live import TrialRequest, try_modes
from toolkit.job.request.locations import named_image
from toolkit.report.live import live_page
from toolkit.report.progress import Progress


def command(options: DoctorOptions, image: str, tell: Progress) -> int:
    """Run a small job in each mode of ``--mode``, or in the mode that toolkit chooses, and print the results.

    Returns:
        The exit status: 0 if every job works and toolkit predicted no failure, else 1.

    Raises:
        ToolkitError: as in :func:`toolkit.job.live.try_modes`.
    """
    file = Path(named_image(image))
    check_startable(file, "IMAGE")
    trial = TrialRequest(
        file,
        options.nodes or 2,
        options.ranks_per_node or 1,
        options.modes,
        options.partition,
        options.account,
        options.verify_key,
        options.no_verify,
    )
    with tell:
        result, host = try_modes(trial, options.host_options, tell)
    if options.as_json:
        say_json(result, indent=True)
    else:
        say_text(live_page(result, host, style_of_stdout(), width_of_stdout()))
    return 0 if result.good else 1
