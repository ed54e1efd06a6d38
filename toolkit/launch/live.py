"""Read the output of a trial of ``toolkit doctor --live``, and compare the trial with the prediction."""

import re
from collections.abc import Iterable

from toolkit.engine.logs.explanation import as_findings, explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.signature_match import ENDING
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.job import JobState
from toolkit.model.live import Message, Seen, Transport, Trial
from toolkit.model.prediction import Outcome, Prediction

_LABEL = re.compile(r"^ *\d+: ?")
_REPORT = re.compile(r"\blive: (.*)$")
_RANK = re.compile(r"rank \d+ of (\d+) on (\S+)")
_SUM = re.compile(r"rank \d+ sum (right|wrong)")
_END = re.compile(r"rank \d+ end")
_PING = re.compile(r"pingpong (nodes|node) (\d+) ([\d.]+) (whole|damaged)")

_BML = re.compile(
    r"\[(?P<host>[^:\[\]]{1,99}):\d+\] mca: bml: Using (?P<btl>\w+) btl for send to \S+ on node (?P<node>\S+)"
)
_MTL = re.compile(r"mca:base:select:\( *mtl\) Selected component \[(?P<mtl>\w+)\]")
_OB1 = re.compile(r"select: component ob1 selected")
_CM = re.compile(r"select: component cm selected")
_UCX = re.compile(r"UCX +INFO .*\binter-node cfg#\d+ \w+\((?P<lanes>[^)]*)\)")
_UCX_OLD = re.compile(r"UCX +INFO .*\bep_cfg\[\d+\]: \w+\((?P<lanes>[^)]*)\)")
_PROVIDER = re.compile(r"libfabric provider: (?P<provider>[\w;-]+)")

_LOCAL = ("self", "memory", "cma", "sysv", "posix", "knem", "xpmem")
"""The UCX transports that work only within one node."""

_SLOW = re.compile(r"\b(tcp|sockets|udp|net)\b")
"""A pattern for the names that Open MPI, UCX (``tcp/eth0``) and libfabric (``tcp;ofi_rxm``) give to
transports over plain Ethernet.
"""

_LOADER = ("missing-", "newer-glibc-needed", "driver-needs-newer-glibc", "mixed-mpi-libraries")
_REFUSED = (
    *("slurm-no-such-mpi", "slurm-lacks-pmix", "slurm-lacks-pmi2", "mpi-type-not-offered", "runtime-absent"),
)
_CRASHES = re.compile(r"Segmentation fault|Bus error|Caught signal|Aborted \(core|SIGSEGV|signal (7|11)\b")
_ENDING = re.compile(ENDING)
_ALARM = re.compile(r"Alarm clock|SIGALRM|signal 14\b|exit code 142")


def verbose(image: ImageFacts) -> dict[str, str]:
    """Return the environment variables with which the image's MPI prints the transports that it uses."""
    implementation = image.mpi.implementation if image.mpi else ""
    log_variables = {"UCX_LOG_LEVEL": "info"}
    if implementation == "openmpi":
        return log_variables | {
            "OMPI_MCA_pml_base_verbose": "10",
            "OMPI_MCA_mtl_base_verbose": "10",
            "OMPI_MCA_btl_base_verbose": "10",
        }
    if implementation == "intelmpi":
        return log_variables | {"I_MPI_DEBUG": "5"}
    return log_variables | {"MPIR_CVAR_DEBUG_SUMMARY": "1"}


def read(output: str) -> Seen:
    """Return the values that a trial's ranks printed, such as world sizes, hosts and message durations."""
    lines = [_LABEL.sub("", line) for line in output.splitlines()]
    reports = [match[1] for line in lines if (match := _REPORT.search(line))]
    ranks = [match for text in reports if (match := _RANK.match(text))]
    return Seen(
        sizes=tuple(int(match[1]) for match in ranks),
        hosts=tuple(match[2] for match in ranks),
        sums=tuple(match[1] == "right" for text in reports if (match := _SUM.match(text))),
        ended=sum(bool(_END.match(text)) for text in reports),
        not_loaded=next((text for text in reports if text.startswith("cannot load ")), ""),
        library=next((" ".join(text.split()[1:]) for text in reports if text.startswith("library ")), ""),
        program=next((text.removeprefix("program ") for text in reports if text.startswith("program ")), ""),
        messages=tuple(_message(match) for text in reports if (match := _PING.match(text))),
        transport=transport(lines),
    )


def outcome(evidence: Seen, output: str, ranks: int, state: JobState) -> Outcome:
    """Return the outcome of a trial with ``ranks`` ranks, such as ``ok``, ``hang`` or ``wrong-size``."""
    if evidence.sizes and set(evidence.sizes) == {1} and ranks > 1:
        return "singletons"
    if any(size != ranks for size in evidence.sizes):
        return "wrong-size"
    whole = all(message.whole for message in evidence.messages)
    if (
        evidence.sizes
        and evidence.ended == ranks
        and len(evidence.sums) == ranks
        and all(evidence.sums)
        and whole
    ):
        return "ok"
    if evidence.not_loaded:
        return "loader-failure"
    if state == "timeout" or _ALARM.search(output):
        return "hang"
    if evidence.sizes:
        return "crash" if _CRASHES.search(output) and all(evidence.sums) else "comm-failure"
    return _before_init(output)


def transport(lines: Iterable[str]) -> Transport | None:
    """Return the transport of messages between nodes; ``None`` if the MPI library printed no transport."""
    log_lines = list(lines)
    if any(_OB1.search(line) for line in log_lines):  # Open MPI may open UCX and libfabric but not use them
        return _over_btl(log_lines)
    return _over_ucx(log_lines) or _over_mtl(log_lines) or _over_libfabric(log_lines)


def compare(prediction: Prediction, evidence: Seen, outcome: Outcome, host: HostFacts, output: str) -> Trial:
    """Return the trial: the prediction, the observed ``outcome``, and whether the two agree.

    The field ``agrees`` of the result is ``None`` if the predicted outcome is unknown.
    """
    known = prediction.outcome != "unknown"
    return Trial(
        mode=prediction.mode,
        predicted=prediction.outcome,
        because=prediction.why,
        observed=outcome,
        agrees=prediction.foretells(outcome) if known else None,
        seen=evidence,
        missed_fabric=missed_fast_network(host, evidence),
        findings=() if outcome == "ok" else as_findings(explain_output(Output(output))),
    )


def missed_fast_network(host: HostFacts, evidence: Seen) -> bool | None:
    """Return whether messages used plain Ethernet although the nodes have a fast network.

    The result is ``None`` if the network or the transport is unknown.
    """
    fast = (*(host.infiniband or ()), *(host.fabrics or ()))
    if evidence.transport is None or (not fast and None in (host.infiniband, host.fabrics)):
        return None
    return bool(fast) and _SLOW.search(evidence.transport.name) is not None


def _before_init(output: str) -> Outcome:
    """Return the outcome of a trial whose ranks did not complete MPI_Init."""
    output_explanation = explain_output(Output(output))
    causes = [finding.id for finding in output_explanation.findings if finding.severity == "error"]
    class_ = output_explanation.fault.id if output_explanation.fault else ""
    if any(cause in _REFUSED for cause in causes) or class_ == "scheduler-refusal":
        return "unavailable"
    if any(cause.startswith(_LOADER) for cause in causes) or class_ == "loader":
        return "loader-failure"
    # A rank that Slurm kills may lose its file system and report a bus error, although it had not crashed.
    # Therefore, search only the part of the output that precedes the message about the kill.
    alive = _ENDING.split(output, maxsplit=1)[0]
    return "crash" if _CRASHES.search(alive) else "init-failure"


def _message(match: re.Match[str]) -> Message:
    return Message(between=match[1], bytes=int(match[2]), seconds=float(match[3]), whole=match[4] == "whole")


def _over_btl(lines: list[str]) -> Transport | None:
    for line in lines:
        match = _BML.search(line)
        if match and match["host"] != match["node"]:
            return Transport(name=match["btl"], evidence=line.strip())
    return None


def _over_mtl(lines: list[str]) -> Transport | None:
    if not any(_CM.search(line) for line in lines):
        return None
    provider = _over_libfabric(lines)
    for line in lines:
        if match := _MTL.search(line):
            over = f" over {provider.name}" if provider else ""
            return Transport(name=f"{match['mtl']}{over}", evidence=line.strip())
    return None


def _over_ucx(lines: list[str]) -> Transport | None:
    for pattern in (_UCX, _UCX_OLD):
        for line in lines:
            lanes = match["lanes"].split() if (match := pattern.search(line)) else []
            far = [lane for lane in lanes if lane.partition("/")[0] not in _LOCAL]
            if far:
                return Transport(name=" ".join(dict.fromkeys(far)), evidence=line.strip())
    return None


def _over_libfabric(lines: list[str]) -> Transport | None:
    matches = ((line, match) for line in lines if (match := _PROVIDER.search(line)))
    return next((Transport(name=match["provider"], evidence=line.strip()) for line, match in matches), None)
