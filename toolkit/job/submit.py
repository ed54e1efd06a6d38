"""Launch a job on a cluster or on this machine, repeat a recorded launch, or write only the job script."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.errors import BadInput, Missing
from toolkit.job.call import Call, Opener
from toolkit.job.places import HostOptions, host_options_of
from toolkit.job.request.flags import Flags
from toolkit.job.request.layering import JobRequest, announce, merge_request

if TYPE_CHECKING:
    from toolkit.job.prepare import Prepared
    from toolkit.model.job import JobRecord
    from toolkit.model.progress import Tell
    from toolkit.run.command import Runner


@dataclass(frozen=True, slots=True)
class _Ready:
    """A prepared job, its host, and the runner, which runs commands on this host."""

    job: "Prepared"
    host_options: HostOptions
    runner: "Runner"


def script(call: Call, tell: "Tell", opener: Opener) -> str:
    """Return the job script of a launch, without copying files or submitting a job.

    Raises:
        ToolkitError: for any fault that would stop the launch.
    """
    if call.from_job is not None:
        with _prepare_repeat(call, tell, opener) as ready:
            return ready.job.script
    request = _merge_request(call, tell)
    if call.local:
        from toolkit.job.local import prepare_here

        return prepare_here(call, request, tell, opener)[1].script
    if request.site is not None and is_far_away(call.host_options, request):
        from toolkit.job.offline import script_for

        return script_for(request, request.site, call.flags, tell)
    with _prepare_launch(call, request, tell, opener, for_submission=False) as ready:
        return ready.job.script


def launch(call: Call, tell: "Tell", opener: Opener, *, follow: bool) -> "JobRecord":
    """Launch a job and return its record.

    If ``follow`` is true, or the job runs on this machine, the function returns after the job ends. If not,
    it returns after the submission to Slurm.

    Raises:
        ToolkitError: for any fault that stops the launch. A job that starts and then
            fails raises no error.
    """
    if call.from_job is not None:
        with _prepare_repeat(call, tell, opener) as ready:
            return _submit_ready(ready, call.flags, tell, follow=follow)
    request = _merge_request(call, tell)
    if call.local:
        from toolkit.job.local import launch_here

        return launch_here(call, request, tell, opener)
    with _prepare_launch(call, request, tell, opener, for_submission=True) as ready:
        return _submit_ready(ready, call.flags, tell, follow=follow)


def is_far_away(host_options: HostOptions, request: JobRequest) -> bool:
    """Return whether the job has a site profile, the user names no host, and this machine has no Slurm."""
    return request.site is not None and not host_options.remote and not shutil.which("sbatch")


def place_of(host_options: HostOptions, request: JobRequest) -> HostOptions:
    """Return the host from which toolkit submits the job.

    If ``host_options`` name a host, return this host. If they name no host, return this machine if it has
    Slurm or if the job has no site profile. In all other cases, return the host in the site profile.

    Raises:
        Missing: if this machine has no Slurm and the site profile names no host.
    """
    if host_options.remote or request.site is None or shutil.which("sbatch"):
        return host_options
    if not request.site.host:
        raise Missing(
            f"this machine has no sbatch, and the profile of {request.site.title} names no host",
            fix="name the login node with `--host`; or give `--dry-run` to print only the job script",
        )
    return host_options._replace(host=request.site.host)


def submit_job(job: "Prepared", host_options: HostOptions, runner: "Runner", tell: "Tell") -> "JobRecord":
    """Copy the job's files to the host, submit the job, and return the job's record, which names the host."""
    from toolkit.launch.tracking import submission
    from toolkit.run.stage import stage

    submission.require_slurm(job.script)
    stage(runner, job.parcels, tell)
    tell.step(f"Submitting to Slurm on {runner.place}")
    return submission.submit(runner, with_place(job, host_options).record, job.script, job.secrets)


def with_place(job: "Prepared", host_options: HostOptions) -> "Prepared":
    """Return the job with a record that contains the name of the host."""
    import msgspec

    config = str(host_options.ssh_config.resolve()) if host_options.ssh_config else None
    record = msgspec.structs.replace(
        job.record, host=host_options.host, cluster=host_options.cluster, ssh_config=config
    )
    return replace(job, record=record)


def _merge_request(call: Call, tell: "Tell") -> JobRequest:
    request = merge_request(call.values, call.words, call.job_file, local=call.local)
    announce(request, tell=tell)
    return request


@contextlib.contextmanager
def _prepare_launch(
    call: Call, request: JobRequest, tell: "Tell", opener: Opener, *, for_submission: bool
) -> Iterator[_Ready]:
    from toolkit.job.meanwhile import Meanwhile
    from toolkit.job.sources import check

    sources = check(request, call.flags)
    host_options = place_of(call.host_options, request)
    # Open the connection in a thread, because the import of `toolkit.job.prepare` below is slow.
    opening = Meanwhile(lambda: opener(*host_options))
    from toolkit.job.prepare import prepare

    runner = opening.result()
    try:
        job = prepare(
            runner,
            request,
            call.flags,
            sources,
            tell,
            remote=host_options.remote,
            for_submission=for_submission,
        )
        yield _Ready(job, host_options, runner)
    finally:
        runner.close()


def _submit_ready(ready: _Ready, flags: Flags, tell: "Tell", *, follow: bool) -> "JobRecord":
    record = submit_job(ready.job, ready.host_options, ready.runner, tell)
    if not follow:
        return record
    from toolkit.job.running.follow import watch_job

    def watch(job: "JobRecord") -> "JobRecord":
        return watch_job(ready.runner, job, tell)

    record = watch(record)
    if not record.spec.requeue:
        return record
    from toolkit.job.request.gate import demand_for
    from toolkit.job.running.retry import retry_faults

    demand = demand_for(record.spec.site, flags.verify_key, flags.no_verify)
    return retry_faults(ready.runner, record, demand, ready.job.secrets, tell, watch)


@contextlib.contextmanager
def _prepare_repeat(call: Call, tell: "Tell", opener: Opener) -> Iterator[_Ready]:
    from toolkit.job.repeat import repeat_job
    from toolkit.launch.tracking import records

    _check_again(call)
    record = records.find(call.from_job, on_damage=tell.step)
    host_options = call.host_options
    if not host_options.remote:
        recorded_place = host_options_of(record)
        host_options = recorded_place._replace(
            ssh_config=host_options.ssh_config or recorded_place.ssh_config
        )
    runner = opener(*host_options)
    try:
        yield _Ready(repeat_job(runner, record, call, tell, remote=host_options.remote), host_options, runner)
    finally:
        runner.close()


def _check_again(call: Call) -> None:
    """Raise an error if the user combines ``--from-job`` with an option that describes a new launch."""
    options = {
        "--local": call.local,
        "--job": call.job_file,
        "--fix": call.flags.fix is not None,
        "--explain": call.flags.explain,
    }
    if clashing := [option for option, value in options.items() if value]:
        raise BadInput(
            f"--from-job: cannot be combined with {' and '.join(clashing)}, because --from-job repeats a "
            "recorded launch",
            fix=f"leave out {' and '.join(clashing)}, or launch without `--from-job`",
        )
