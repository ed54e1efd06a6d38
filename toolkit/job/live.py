"""``toolkit doctor --live``: run a small job in a launch mode, and compare its result with the prediction."""

import posixpath
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.engine.predict import predict
from toolkit.errors import BadInput
from toolkit.job.places import HostOptions
from toolkit.job.prepare import make_record
from toolkit.job.request.gate import ImageClearance, clear, demand_of
from toolkit.job.request.inputs import StartableImage, inspect_input
from toolkit.job.request.keys import KeyDemand
from toolkit.job.request.layering import merge_request as settings
from toolkit.job.request.locations import directory, image_there
from toolkit.job.running.follow import watch_job
from toolkit.launch import live, trial
from toolkit.launch.jobscript import plan, script
from toolkit.launch.jobscript.choose import choose
from toolkit.launch.request.specify import request_of
from toolkit.launch.tracking import records, submission
from toolkit.launch.tracking.jobs import kept_output
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.live import Live, Trial
from toolkit.model.prediction import MPI_MODES, Mode, Prediction, Request, Verdict
from toolkit.model.progress import Tell
from toolkit.probe.asking import of_job
from toolkit.probe.probe import probe
from toolkit.run.command import Runner
from toolkit.run.stage import Parcel, stage
from toolkit.runtime import apptainer

_MINUTES = "4"
"""The time limit of a trial in minutes. A trial is a small job in one launch mode.

A trial usually takes some seconds. If a trial hangs, Slurm stops the trial at this limit.
"""


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """The options of ``toolkit doctor --live``."""

    image: Path
    nodes: int
    ranks_per_node: int
    modes: tuple[Mode, ...]
    partition: str | None
    account: str | None
    verify_key: str | None = None
    no_verify: bool = False

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True, slots=True)
class _Bench:
    """The values that all trials of one ``toolkit doctor --live`` share, such as the host and the image."""

    request: TrialRequest
    host_options: HostOptions
    runner: Runner
    host: HostFacts
    image: ImageFacts
    programs: tuple[trial.TrialProgram, ...]
    base: str
    image_path: str
    clearance: ImageClearance
    tell: Tell


def try_modes(trial_request: TrialRequest, host_options: HostOptions, tell: Tell) -> tuple[Live, HostFacts]:
    """Run a trial of each launch mode in the request. If the request names no mode, try only one mode.

    Returns:
        the results of the trials, and the host's facts.

    Raises:
        BadInput: if the image is not a SIF file, or a mode does not use MPI.
        Missing: if the image has no MPI library or cannot run the trial program, or the host is unreachable.
    """
    _check(trial_request)
    # Of the values in the user's settings, a trial uses only the key that must have signed the image.
    demand = demand_of(settings({}, ("true",)), trial_request.verify_key, trial_request.no_verify)
    runner = host_options.open()
    try:
        tell.step(f"Reading {trial_request.image.name} and probing {runner.place}")
        startable = inspect_input(runner, trial_request.image.resolve(), None, tell, remote=False)
        image, host = startable.facts, probe(runner, of_job(trial_request.partition))
        request = Request(
            nodes=trial_request.nodes, ranks_per_node=trial_request.ranks_per_node, program="mpi"
        )
        verdict = predict(host, image, request)
        bench = _bench(trial_request, host_options, runner, host, startable, demand, tell)
        trials = tuple(_try(bench, verdict.of(mode)) for mode in _modes(trial_request, verdict))
    finally:
        runner.close()
    result = Live(
        place=runner.place,
        image=str(trial_request.image),
        digest=image.digest,
        nodes=trial_request.nodes,
        ranks_per_node=trial_request.ranks_per_node,
        trials=trials,
    )
    return result, host


def _check(request: TrialRequest) -> None:
    if without := [mode for mode in request.modes if mode not in MPI_MODES]:
        raise BadInput(
            f"--live --mode {without[0]}: this mode does not use MPI, but `--live` tests only modes with MPI"
        )
    if not request.image.is_file():
        what = "this is a folder; --live needs a SIF file" if request.image.is_dir() else "no such file"
        raise BadInput(f"{request.image}: {what}")
    script.check_names(partition=request.partition, account=request.account)


def _modes(request: TrialRequest, verdict: Verdict) -> list[Mode]:
    """Return the launch modes to try.

    These are the modes in the request. If the request names no mode, return only the mode that toolkit
    recommends. If toolkit recommends no mode, return the first mode for which toolkit found a launch command.
    If there is no such mode, return the first mode of the prediction.
    """
    if request.modes:
        return list(dict.fromkeys(request.modes))
    possible: list[Mode] = [p.mode for p in verdict.predictions if p.plan]
    return [verdict.chosen] if verdict.chosen else possible[:1] or [verdict.predictions[0].mode]


def _bench(
    request: TrialRequest,
    host_options: HostOptions,
    runner: Runner,
    host: HostFacts,
    startable: StartableImage,
    demand: KeyDemand,
    tell: Tell,
) -> _Bench:
    image = startable.facts
    if image.format != "sif":
        raise BadInput(
            f"{request.image}: the format of this image is {image.format}; --live needs a SIF file"
        )
    trial.library(image, "srun-pmix")  # raises an error if the image has no MPI, before toolkit copies a file
    programs = trial.programs(image, runner)
    base = directory(runner, None, remote=host_options.remote)
    cleared = clear(startable, demand, tell)
    source = request.image.resolve()
    image_path = image_there(source, startable.digest, base) if host_options.remote else str(source)
    if host_options.remote:
        stage(runner, [Parcel(source, image_path, startable.digest)], tell)
    return _Bench(request, host_options, runner, host, image, programs, base, image_path, cleared, tell)


def _try(bench: _Bench, prediction: Prediction) -> Trial:
    """Run the trial of one launch mode, and compare the result of the trial with the prediction.

    If toolkit found no launch command for the mode, return the prediction without a trial.
    """
    if prediction.plan is None:
        return Trial(mode=prediction.mode, predicted=prediction.outcome, because=prediction.why)
    begun = time.monotonic()
    record, text = _job(bench, prediction.mode)
    for file in bench.programs:
        bench.runner.write(posixpath.join(record.spec.directory, file.name), file.content, file.mode)
    bench.tell.step(f"Trying {prediction.mode}: {record.spec.ranks} ranks on {record.spec.nodes} nodes")
    record = watch_job(bench.runner, submission.submit(bench.runner, record, text), bench.tell, quiet=True)
    output = kept_output(record)
    evidence = live.read(output)
    observed = live.outcome(evidence, output, bench.request.ranks, record.state)
    comparison = live.compare(prediction, evidence, observed, bench.host, output)
    return msgspec.structs.replace(comparison, job=record.key, seconds=round(time.monotonic() - begun, 2))


def _job(bench: _Bench, mode: Mode) -> tuple[JobRecord, str]:
    request, host_options = bench.request, bench.host_options
    folder = posixpath.join(bench.base, "runs", records.new_key(f"live-{mode}"))
    loaded = trial.library(bench.image, mode)
    spec = JobSpec(
        name=f"live-{mode}",
        image=bench.image_path,
        command=trial.command(folder, loaded, request.ranks),
        directory=folder,
        nodes=request.nodes,
        ranks_per_node=request.ranks_per_node,
        time=_MINUTES,
        partition=request.partition,
        account=request.account,
        env=live.verbose(bench.image),
        binds=(apptainer.bind(folder),),
        preflight=False,
    )
    verdict = predict(bench.host, bench.image, request_of(spec, spec.env, mode, None, "mpi"))
    choice = choose(verdict, mode, force=True)
    record = msgspec.structs.replace(
        make_record(bench.runner.place, spec, choice, bench.clearance),
        host=host_options.host,
        cluster=host_options.cluster,
        ssh_config=str(host_options.ssh_config.resolve()) if host_options.ssh_config else None,
    )
    because = f"tried by toolkit doctor --live; predicted: {choice.prediction.outcome}"
    runtime = plan.runtime_of(bench.host)
    return record, script.job_script(
        spec, choice.plan, because, runtime, image=bench.image, notes=(bench.clearance.note,)
    )
