"""Print the answer of ``toolkit doctor`` about an image, a build file or, without IMAGE, a host."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from toolkit.cli.doctor.options import DoctorOptions
from toolkit.cli.frame.say import say_json, say_text
from toolkit.errors import BadInput
from toolkit.job.diagnosis import Diagnosis, LaunchQuestion
from toolkit.model.facts import HostFacts
from toolkit.model.finding import Finding
from toolkit.report.progress import Progress


def judge_image(options: DoctorOptions, image: str, tell: Progress) -> int:
    """Predict the launch of an image, and print the prediction or write the fix.

    Returns:
        The exit status: 0 if a launch mode works or the fix was written, else 1.
    """
    from toolkit.job.diagnosis import diagnose, request_launch
    from toolkit.job.request.silence import silenced_findings

    with tell:
        asked = request_launch(_question(options, image), tell)
        silenced = silenced_findings(asked.site)
        found = diagnose(
            image, options.facts, asked, options.host_options, options.partition, tell, run=not options.no_run
        )
    if options.fix:
        from toolkit.cli.doctor import fix

        place = [*options.place_words, *found.request.words]
        fix.command(found, options.output or fix.DEFAULT, place, as_json=options.as_json)
        return 0
    _show(options, found, silenced)
    return 0 if found.verdict.chosen else 1


def judge_buildfile(options: DoctorOptions, file: Path, tell: Progress) -> int:
    """Predict the launch of the image that a build file describes, and print the prediction.

    Returns:
        The exit status: 0 if the answer is "Perhaps", else 1.

    Raises:
        BadInput: if toolkit cannot read the build file, or the user gives ``--fix``.
    """
    from toolkit.cli.doctor import buildfile
    from toolkit.job.diagnosis import request_launch
    from toolkit.job.facts import read_or_probe

    if options.fix:
        raise BadInput(
            f"--fix: needs an image, but {file} is a build file",
            fix="build the image, then give the image instead of the build file",
        )
    with tell:
        asked = request_launch(_question(options, str(file), ready=False), tell)
        host = read_or_probe(options.facts, options.host_options, options.partition)
    return buildfile.command(file, host, asked, full=options.everything, as_json=options.as_json)


def judge_host(options: DoctorOptions) -> int:
    """Print the facts and findings of a host. Return the exit status: 1 if a finding is an error, else 0."""
    from toolkit.engine import predict
    from toolkit.job.facts import read_or_probe
    from toolkit.job.request.silence import silenced_findings

    silenced = silenced_findings()
    host = read_or_probe(options.facts, options.host_options, options.partition)
    found = predict.judge_host(host)
    _show_host(options, host, found, silenced)
    return 1 if any(one.severity == "error" for one in found) else 0


def _question(options: DoctorOptions, image: str, *, ready: bool = True) -> LaunchQuestion:
    """Return the launch to predict: the image, the numbers of nodes and ranks, and the launch options. For a
    build file (``ready=False``), ignore ``--site``, ``--job``, ``--runtime`` and ``--env-image``.
    """
    return LaunchQuestion(
        image=image,
        site=options.site if ready else None,
        job_file=options.job_file if ready else None,
        partition=options.partition,
        nodes=options.nodes,
        ranks_per_node=options.ranks_per_node,
        mode=options.mode,
        command=options.program,
        runtime=options.runtime if ready else None,
        env_image=options.env_image if ready else None,
    )


def _show(options: DoctorOptions, diagnosis: Diagnosis, silenced: Mapping[str, str]) -> None:
    """Print the prediction for an image. ``silenced`` are findings to hide (finding id → reason)."""
    if options.as_json:
        from toolkit.report.doctor.as_json import verdict_json

        say_json(verdict_json(diagnosis.host, diagnosis.image, diagnosis.verdict, silenced))
        return
    from toolkit.cli.doctor.advice import DoctorRequest, advise
    from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
    from toolkit.report.doctor.page import page

    launch = diagnosis.request
    asked = DoctorRequest(
        diagnosis.host,
        diagnosis.image,
        launch.request,
        options.place_words,
        options.facts_words,
        launch.site,
        launch.words,
    )
    advice = advise(asked, diagnosis.verdict)
    say_text(
        page(
            diagnosis.host,
            diagnosis.image,
            diagnosis.verdict,
            launch.request,
            next_command=advice.command,
            advice=advice.text,
            full=options.everything,
            silenced=silenced,
            style=style_of_stdout(),
            width=width_of_stdout(),
        )
    )


def _show_host(
    options: DoctorOptions, host: HostFacts, host_findings: tuple[Finding, ...], silenced: Mapping[str, str]
) -> None:
    """Print the facts and findings of a host. ``silenced`` are findings to hide (finding id → reason)."""
    if options.as_json:
        from toolkit.report.doctor.as_json import host_json

        say_json(host_json(host, host_findings, silenced))
        return
    from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
    from toolkit.report.doctor.page import host_page

    command = shlex.join(["toolkit", "doctor", "IMAGE", *options.facts_words])
    say_text(
        host_page(
            host,
            host_findings,
            command,
            full=options.everything,
            silenced=silenced,
            style=style_of_stdout(),
            width=width_of_stdout(),
        )
    )
