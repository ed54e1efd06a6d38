"""The advice of ``toolkit doctor``: a launch command, a fix, or the probe that collects unknown facts."""

import shlex
from dataclasses import dataclass

import msgspec

from toolkit.engine.main_fault import concerns_all, main_fault
from toolkit.engine.predict import predict, working_modes
from toolkit.engine.traits import computes_on_gpus
from toolkit.image.files.reference import sif_command
from toolkit.image.locks.match_recipe import match_recipe
from toolkit.image.startable import STARTABLE_FORMATS
from toolkit.launch.request.fix import find_fix
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Request, Verdict
from toolkit.model.site import Site
from toolkit.report.doctor.ways import shape


@dataclass(frozen=True, slots=True)
class DoctorRequest:
    """The launch that ``toolkit doctor`` predicts, and the options for the command that ``toolkit doctor``
    suggests.

    ``host_options`` contains the options with which other commands, such as ``toolkit launch``, connect to
    the host. ``facts_options`` contains the options with which ``toolkit doctor`` reads the facts of the
    host. With the option ``--facts FILE``, the name of the host is unknown, so ``host_options`` contains the
    placeholder ``LOGIN_NODE``.
    """

    host: HostFacts
    image: ImageFacts
    request: Request
    host_options: tuple[str, ...] = ()
    facts_options: tuple[str, ...] = ()
    site: Site | None = None
    job: tuple[str, ...] = ()
    """The options ``--site``, ``--job``, ``--runtime`` and ``--env-image`` that the user gave, with their
    values.
    """

    @property
    def program(self) -> tuple[str, ...]:
        """``--`` and the command that each rank runs, for the end of the suggested command line. The word
        ``COMMAND`` is a placeholder if the user gave no command. The result is empty with ``--job``, because
        the job file contains the command.
        """
        if "--job" in self.job:
            return ()
        return ("--", *(self.request.command or ("COMMAND",)))


@dataclass(frozen=True, slots=True)
class NextStep:
    """The advice: ``text`` describes the fix, and ``command`` is the command to type next. An empty string
    means that toolkit has no text or no command.
    """

    text: str = ""
    command: str = ""


def advise(doctor_request: DoctorRequest, verdict: Verdict) -> NextStep:
    """Return the advice for a launch. The advice never contains a launch command that toolkit predicts to
    fail.
    """
    mode = doctor_request.request.mode
    if verdict.chosen is not None:
        return NextStep(command=_launch(doctor_request, doctor_request.request, mode))
    works = working_modes(verdict.predictions)
    missing = _missing(verdict, mode)
    if works:
        return NextStep(
            _other_mode(works[0], mode, missing),
            _launch(doctor_request, doctor_request.request, _mode_to_name(works[0])),
        )
    if missing:
        text = (
            f"The prediction depends on unknown facts: {', '.join(missing)}. Probe the cluster's login node."
        )
        return NextStep(
            text, shlex.join(["toolkit", "probe", *doctor_request.host_options, "-o", "facts.json"])
        )
    return _fix_step(doctor_request, verdict)


def _fix_step(doctor_request: DoctorRequest, verdict: Verdict) -> NextStep:
    """Return the advice for a launch that works in no launch mode. The advice is one of these: use ``--fix``,
    run all ranks on one node, build another image, or apply the fix of the most important finding.
    """
    request = doctor_request.request
    found = main_fault(verdict, request.mode)
    of_all = found is not None and concerns_all(found, verdict)
    if find_fix(doctor_request.host, doctor_request.image, request, doctor_request.site) is not None:
        text = "toolkit predicts that the launch works with the options that --fix writes."
        return NextStep(
            f"{_sentence(found.fix)} {text}" if found and of_all else text, _fix_command(doctor_request)
        )
    if not of_all and (one := _on_one_node(doctor_request)) is not None:
        ranks = "both" if one.ranks_per_node == 2 else f"all {one.ranks_per_node}"
        text = f"toolkit predicts that the launch works with {ranks} ranks on one node."
        return NextStep(_or_another_image(doctor_request, text), _launch(doctor_request, one, one.mode))
    text = _sentence(found.fix) if found else ""
    with_image = _or_another_image(doctor_request, text)
    return NextStep(with_image, "" if with_image == text else _fix_command(doctor_request))


def _or_another_image(doctor_request: DoctorRequest, text: str) -> str:
    if match_recipe(doctor_request.host, doctor_request.image, doctor_request.request) is None:
        return text
    return f"{text} Or let --fix write a recipe for an image that is predicted to work.".strip()


def _on_one_node(doctor_request: DoctorRequest) -> Request | None:
    """Return the request with all ranks on one node. The result names the requested launch mode only if
    this mode works on one node. Return ``None`` if the request has one node, or if one node does not help.
    """
    request = doctor_request.request
    if request.nodes == 1:
        return None
    one = msgspec.structs.replace(request, nodes=1, ranks_per_node=request.nodes * request.ranks_per_node)
    one = msgspec.structs.replace(one, mode=None)
    verdict = predict(doctor_request.host, doctor_request.image, one, doctor_request.site)
    if request.mode in working_modes(verdict.predictions):
        return msgspec.structs.replace(one, mode=request.mode)
    return one if verdict.chosen else None


def _other_mode(working_mode: Mode, requested_mode: Mode | None, missing: tuple[str, ...]) -> str:
    instead = f" instead of {requested_mode}" if requested_mode else ""
    whom = " Mode gloo works only for Horovod." if working_mode == "gloo" else ""
    decided = f"{requested_mode} works" if requested_mode else "other modes work"
    unknown = f" Facts that decide whether {decided} are unknown: {', '.join(missing)}." if missing else ""
    return f"Use mode {working_mode}{instead}: toolkit predicts that {working_mode} works.{whom}{unknown}"


def _mode_to_name(mode: Mode) -> Mode | None:
    """Return the value of ``--mode`` in the suggested command. Return ``None`` if the command needs no
    ``--mode``. Only Gloo needs ``--mode``, because toolkit never selects Gloo by default.
    """
    return mode if mode == "gloo" else None


def _launch(doctor_request: DoctorRequest, request: Request, mode: Mode | None) -> str:
    image = doctor_request.image
    if image.format not in STARTABLE_FORMATS:
        return sif_command(image)
    trains = doctor_request.program == ("--", "COMMAND") and image.stack and image.horovod
    words = ["toolkit", "launch", *(["mnist"] if trains else []), "--image", image.path, *shape(request)]
    words += (
        ["--gpus-per-node", str(len(doctor_request.host.gpus or ()))]
        if computes_on_gpus(doctor_request.host, image)
        else []
    )
    words += ["--mode", mode] if mode else []
    return shlex.join(
        [
            *words,
            *doctor_request.host_options,
            *doctor_request.job,
            *(() if trains else doctor_request.program),
        ]
    )


def _fix_command(doctor_request: DoctorRequest) -> str:
    mode = ["--mode", doctor_request.request.mode] if doctor_request.request.mode else []
    words = ["toolkit", "doctor", doctor_request.image.path, *shape(doctor_request.request), *mode]
    command = doctor_request.program if doctor_request.request.command else ()
    return shlex.join([*words, *doctor_request.facts_options, *doctor_request.job, "--fix", *command])


def _missing(verdict: Verdict, mode: Mode | None) -> tuple[str, ...]:
    asked = [p for p in verdict.predictions if mode in {None, p.mode} and p.outcome == "unknown"]
    return tuple(dict.fromkeys(name for p in asked for name in p.missing))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
