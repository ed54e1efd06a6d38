"""``toolkit launch --local``: run an image and a trainer on this machine, without Slurm."""

import dataclasses
import posixpath
from pathlib import Path

import msgspec

from toolkit.errors import BadInput
from toolkit.job.call import Call, Opener
from toolkit.job.prepare import Prepared, make_record
from toolkit.job.program_check import check_program
from toolkit.job.project.code import with_start_folder
from toolkit.job.rank_view import read_command_here, view_of_job
from toolkit.job.request.envfile import check_runtime, clear_env, request_with_env, with_env_file
from toolkit.job.request.gate import clear, demand_of
from toolkit.job.request.inputs import find_startable, inspect_input
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.locations import directory
from toolkit.job.sources import check
from toolkit.launch import loaded
from toolkit.launch.jobscript import plan
from toolkit.launch.jobscript.localscript import choose_here, local_script, without_queue
from toolkit.launch.jobscript.preflight import has_check
from toolkit.launch.request import trainers
from toolkit.launch.request.copies import in_own_folders
from toolkit.launch.request.specify import JobPaths, name_of, request_of, specify
from toolkit.launch.tracking import records
from toolkit.launch.tracking.local_run import run_local
from toolkit.model.hidden import secrets_among
from toolkit.model.job import JobRecord
from toolkit.model.progress import Tell
from toolkit.probe.asking import NodeChoice as Question
from toolkit.probe.probe import probe
from toolkit.run.command import Runner


def launch_here(call: Call, request: JobRequest, tell: Tell, opener: Opener) -> JobRecord:
    """Run a job on this machine, and return its record after the job ends. ``tell`` prints the job's output.

    Raises:
        BadInput: if an option needs a cluster.
        CheckFailed: if toolkit predicts that the launch fails.
    """
    runner, job = prepare_here(call, request, tell, opener)
    return run_local(runner, job.record, job.script, tell.output, job.secrets)


def prepare_here(call: Call, job_request: JobRequest, tell: Tell, opener: Opener) -> tuple[Runner, Prepared]:
    """Return a runner for commands on this machine, and the prepared job.

    ``opener`` is the function that opens the runner.

    Raises:
        BadInput: if an option needs a cluster.
        CheckFailed: if toolkit predicts that the launch fails.
    """
    _check_options(call, job_request)
    job_request = _without_queue(call, job_request, tell)
    job = job_request.job
    sources = check(job_request, call.flags)
    runner = opener(None, None, None)
    image = find_startable(
        inspect_input(runner, sources.image, None, tell, remote=False, view=view_of_job(job, None))
    )
    facts = image.facts
    sources, job = check_program(sources, job_request, call.flags, image, tell, gpus=True)
    job = trainers.with_strategy(job, facts)
    demand = demand_of(job_request, call.flags.verify_key, call.flags.no_verify)
    cleared = clear(image, demand, tell)
    env_image = clear_env(sources.env, image, demand, tell, force=call.flags.force)
    host = loaded.with_runtime(probe(runner, Question(nodes="0")), None, (), job.runtime or "")
    base = directory(runner, job.directory, remote=False)
    folder = posixpath.join(base, "runs", records.new_key(name_of(job)))
    runtime = plan.runtime_of(host)
    check_runtime(job.env_image, runtime)
    places = JobPaths(folder, image.cluster_path, str(sources.data or ""), str(sources.program or ""))
    spec = specify(
        job, with_env_file(with_start_folder(places, sources.code, job, None, remote=False), env_image)
    )
    spec = msgspec.structs.replace(
        spec,
        preflight=bool(job.preflight)
        and has_check(facts, trainer=bool(job.trainer), user_site=bool(job.user_site)),
    )
    spec = in_own_folders(spec) if call.flags.copies else spec
    env = dict(job.env or {})
    request = request_of(spec, env, job.mode, None, job.program, read_command_here(job.command or ()))
    choice = choose_here(
        host,
        facts,
        request_with_env(request, spec, env_image),
        force=call.flags.force,
    )
    text = local_script(spec, choice.plan, choice.because, runtime, facts)
    record = make_record(runner.place, spec, choice, cleared, env_image.digest)
    return runner, Prepared(record, text, (), runtime, secrets_among(env))


def _without_queue(call: Call, request: JobRequest, tell: Tell) -> JobRequest:
    """Return the request without options that need a batch queue, and print the names of these options."""
    job, left_out = without_queue(request.job, request.origins, _job_file(call))
    if left_out:
        tell.step(f"Ignored, because --local uses no Slurm queue: {', '.join(left_out)}")
    return dataclasses.replace(request, job=job)


def _check_options(call: Call, request: JobRequest) -> None:
    """Check that the user gave no option that needs a cluster.

    Raises:
        BadInput: if an option needs a cluster; the message names the option.
    """
    if call.host_options.remote or request.site:
        raise BadInput("--local: cannot be combined with --host, --cluster or --site")
    if call.flags.fix is not None:
        raise BadInput("--local: cannot be combined with --fix, which is for a launch on a cluster")
    if call.flags.explain:
        raise BadInput("--local: cannot be combined with --explain, which explains Slurm job scripts")


def _job_file(call: Call) -> str:
    """Return the path that the user gave as ``--job`` or as the trainer, or an empty string."""
    named = str(call.job_file or call.values.get("trainer") or "")
    return str(Path(named)) if named else ""
