"""Determine the container runtime that a job finds after the job has loaded its modules; the probe does not
load these modules."""

import posixpath
from collections.abc import Sequence

import msgspec

from toolkit.launch.jobscript.plan import runtime_of
from toolkit.model.facts import ContainerRuntime, HostFacts
from toolkit.model.site import Site
from toolkit.runtime import COMMAND as RUNTIME
from toolkit.runtime import runtime_of_name

_ASSUMED = "is assumed to exist"
_RUNTIMES = ("apptainer", "singularity")


def command_of(host: HostFacts, site: Site | None, option: str = "") -> str:
    """Return the command that starts containers: ``option``, else the command in the site profile, else
    the command of the host's runtime.
    """
    return option or (site.container.command if site else runtime_of(host))


def with_runtime(host: HostFacts, site: Site | None, modules: Sequence[str], option: str = "") -> HostFacts:
    """Return the facts of a host with the container runtime that the job will use.

    toolkit chooses the runtime ``option``, else the command in the site profile, else the runtime in the
    host's facts. If the probe did not find the chosen runtime, toolkit assumes that a module or a path in the
    profile provides this runtime. If no module and no path can provide the runtime, the facts contain no
    runtime. If a node lacks the assumed runtime, the job script stops with a message. ``modules`` are the
    modules that the job loads in addition to the site's modules.
    """
    host, why = _prefer_runtime(host, command_of(host, site, option)), _why(site, modules)
    if host.runtime is not None or "runtime" not in host.absent or not why:
        return host
    command = option or (site.container.command if site else _runtime_in(why))
    unread = f"{command} was not probed: {why}"
    return msgspec.structs.replace(
        host,
        runtime=ContainerRuntime(name=posixpath.basename(command), version="", path=command, seen=False),
        evidence={**host.evidence, "runtime": f"{command} {_ASSUMED}, because {why}; its version is unknown"},
        absent={name: line for name, line in host.absent.items() if name != "runtime"},
        unknown={**host.unknown, **{f"runtime.{part}": unread for part in ("version", "settings", "setuid")}},
    )


def _prefer_runtime(host: HostFacts, command: str) -> HostFacts:
    """Return the host's facts with ``command`` as the host's runtime. If the probe did not find ``command``,
    the result has no runtime.
    """
    kind, first = runtime_of_name(command), host.runtime
    if first is None or runtime_of_name(first.name) is kind:
        return host
    preferred = next(
        (runtime for runtime in host.other_runtimes if runtime_of_name(runtime.name) is kind), None
    )
    remaining = tuple(runtime for runtime in (first, *host.other_runtimes) if runtime is not preferred)
    if preferred is None and "other_runtimes" in host.unknown:
        unknown = {**host.unknown, "runtime": host.unknown["other_runtimes"]}
        return msgspec.structs.replace(host, runtime=None, other_runtimes=remaining, unknown=unknown)
    if preferred is None:
        line = f"{command}: not found on PATH; {first.name} was found"
        return msgspec.structs.replace(
            host, runtime=None, other_runtimes=remaining, absent={**host.absent, "runtime": line}
        )
    return msgspec.structs.replace(
        host,
        runtime=preferred,
        other_runtimes=remaining,
        evidence={
            **host.evidence,
            "runtime": f"{preferred.path} --version: {preferred.name} {preferred.version or '?'}",
        },
        unknown={name: why for name, why in host.unknown.items() if name.partition(".")[0] != "runtime"},
    )


def assumption_line(host: HostFacts) -> tuple[str, ...]:
    """Return a sentence about the runtime that :func:`with_runtime` assumed, or an empty tuple."""
    line = host.evidence.get("runtime", "")
    return (line,) if _ASSUMED in line else ()


def _why(site: Site | None, modules: Sequence[str]) -> str:
    """Return a phrase about the module or path that provides the container runtime, or an empty text."""
    if site and "/" in site.container.command:
        return "the site profile names the path of the runtime"
    if site and site.container.modules:
        return _provides(site.container.modules[-1])
    every = (*(site.modules if site else ()), *modules)
    return next((_provides(m) for m in every if any(name in m.lower() for name in _RUNTIMES)), "")


def _provides(module: str) -> str:
    return f"module {module if module.startswith('swap ') else f'load {module}'} provides the runtime"


def _runtime_in(reason: str) -> str:
    return "apptainer" if "apptainer" in reason.lower() else RUNTIME
