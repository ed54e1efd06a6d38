"""``launch --local``: the same image and trainer on this machine, without Slurm."""

import dataclasses
import posixpath
from pathlib import Path

import msgspec

from toolkit.cli.say import say_exact, say_json
from toolkit.errors import BadInput
from toolkit.folders import at_home
from toolkit.job.follow import conclude
from toolkit.job.gate import clear, demand_of
from toolkit.job.inputs import look, startable
from toolkit.job.layering import Asked
from toolkit.job.prepare import Flags, check, to_record
from toolkit.job.submit import Call, Opener
from toolkit.launch import plan, records
from toolkit.launch.alone import run_local
from toolkit.launch.localscript import choose_here, local_script, without_queue
from toolkit.launch.specify import Places, name_of, request_of, specify
from toolkit.launch.trainers import check_carried
from toolkit.model.hidden import hidden
from toolkit.probe.asking import Asked as Question
from toolkit.probe.probe import probe
from toolkit.report.progress import Progress


def launch_here(call: Call, asked: Asked, tell: Progress, opener: Opener) -> None:
    """Run a job on this machine to its end; the output goes to the screen and to the record.

    Raises:
        BadInput: for what needs a cluster.
        CheckFailed: if a failure is predicted, or the job fails.
    """
    if call.where.remote or asked.site:
        raise BadInput("--local: leave --host, --cluster and --site out, as the job runs on this machine")
    flags = Flags(call.force, call.fix, call.verify_key, call.no_verify)
    if call.fix is not None:
        raise BadInput("--local: a fix is for the launch on a cluster; leave --fix out")
    if call.explain:
        raise BadInput("--local: the values of a script for Slurm are explained; leave --explain out")
    if not call.follow:
        raise BadInput(
            "--local: a job of this machine runs as long as the command does; leave --no-follow out",
            fix="put it into the background with the shell: nohup toolkit launch --local ... &",
        )
    job, left_out = without_queue(asked.job, asked.origins, _job_file(call))
    if left_out:
        tell.step(f"Left out, as there is no queue with --local: {', '.join(left_out)}")
    sources = check(dataclasses.replace(asked, job=job), flags)
    runner = opener(None, None, None)
    image = startable(look(runner, sources.image, None, tell, remote=False))
    facts = image.facts
    check_carried(job, facts)
    cleared = clear(image, demand_of(asked, flags.verify_key, flags.no_verify), tell)
    host = probe(runner, Question(nodes="0"))
    base = at_home(job.directory or ".").resolve()
    folder = posixpath.join(base, "runs", records.new_key(name_of(job)))
    places = Places(folder, image.there, str(sources.data or ""), str(sources.program or ""))
    spec = specify(job, places)
    spec = msgspec.structs.replace(spec, preflight=bool(job.preflight) and facts.stack is not None)
    env = dict(job.env or {})
    choice = choose_here(host, facts, request_of(spec, env, job.mode, None), force=call.force)
    text = local_script(spec, choice.plan, choice.because, plan.runtime_of(host))
    if call.dry_run:
        say_exact(text)
        return
    record = to_record(runner.place, spec, choice, cleared)
    on_line = (lambda _: None) if call.as_json else tell.output
    record = run_local(runner, record, text, on_line, hidden(env))
    if call.as_json:
        say_json(record)
    conclude(record, tell)


def _job_file(call: Call) -> str:
    """Return the job file as origins name it: the one of ``--job``, or a trainer that is one."""
    named = str(call.job_file or call.said.get("trainer") or "")
    return str(Path(named)) if named else ""
