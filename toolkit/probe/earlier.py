"""Convert saved facts of earlier toolkit releases to the current form (pure functions)."""

import re

import msgspec

from toolkit.model.facts import ContainerRuntime, HostFacts
from toolkit.runtime import RUNTIMES

_THERE_IS = re.compile(r"there is ([\w, -]{1,200})", re.ASCII)


def with_described_runtime(host: HostFacts) -> HostFacts:
    """Return saved facts with the container runtime in the field ``runtime``.

    If a machine had a runtime such as Podman instead of Apptainer, some earlier releases of toolkit did not
    fill this field. These releases named the runtime only in the reason why Apptainer was absent: ``there is
    podman``.
    """
    match = _THERE_IS.search(host.absent.get("runtime", "")) if host.runtime is None else None
    names = [word.strip() for word in match[1].split(",")] if match else []
    kind = next((runtime for runtime in RUNTIMES if set(runtime.NAMES) & set(names)), None)
    if kind is None:
        return host
    name = next(name for name in kind.NAMES if name in names)
    absent = {key: why for key, why in host.absent.items() if key != "runtime"}
    evidence = {**host.evidence, "runtime": host.absent["runtime"]}
    runtime = ContainerRuntime(name=name, version="", path=name)
    return msgspec.structs.replace(host, runtime=runtime, absent=absent, evidence=evidence)
