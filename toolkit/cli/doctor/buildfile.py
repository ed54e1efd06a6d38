"""``toolkit doctor Dockerfile`` and ``FILE.def``: predict the launch of an image from its build file."""

import shlex
from pathlib import Path

import msgspec

from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
from toolkit.engine.usual_facts import fill
from toolkit.image.buildfile.reading import read_buildfile
from toolkit.job.diagnosis import LaunchRequest
from toolkit.model.facts import HostFacts


def command(file: Path, host: HostFacts, launch_request: LaunchRequest, *, full: bool, as_json: bool) -> int:
    """Print the prediction, and return the exit status: 0 if the printed answer is "Perhaps", else 1.

    The answer is never "Yes", because the image does not exist yet.

    Args:
        file: the Dockerfile or definition file.
        host: the facts of the host.
        launch_request: the launch to predict.
        full: whether to print all launch modes and all findings.
        as_json: whether to print JSON instead of text.

    Raises:
        BadInput: if toolkit cannot read the build file.
    """
    from toolkit.report.doctor.as_json import verdict_json
    from toolkit.report.doctor.buildfile import buildfile_answer, buildfile_page

    build = read_buildfile(file)
    found = launch_request.judge(host, fill(host, build.image)[1])
    good = buildfile_answer(build, found.verdict, launch_request.request).word == "Perhaps"
    if as_json:
        verdict = msgspec.structs.replace(found.verdict, findings=(*build.faults, *found.verdict.findings))
        say_json(verdict_json(found.host, build.image, verdict))
        return 0 if good else 1
    say_text(
        buildfile_page(
            build,
            found.host,
            found.verdict,
            launch_request.request,
            next_command=_build(file),
            full=full,
            style=style_of_stdout(),
            width=width_of_stdout(),
        )
    )
    return 0 if good else 1


def _build(file: Path) -> str:
    """Return the shell command that builds the image from the build file."""
    if file.suffix == ".def":
        return shlex.join(["apptainer", "build", f"{file.stem}.sif", str(file)])
    named = [] if file.name == "Dockerfile" else ["-f", str(file)]
    return shlex.join(["docker", "build", "-t", "my-image", *named, str(file.parent)])
