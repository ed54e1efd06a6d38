"""Split the output of a probe into the answers of the contacted machine and of the compute nodes (pure
functions).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolkit.probe.asking import NodeChoice
from toolkit.probe.evidence import NO_ANSWER, VERSION
from toolkit.probe.hostlist import expand, fold

NODES = "toolkit-nodes/1"
_LABELLED = re.compile(r" *(\d{1,7}): ?(.*)", re.ASCII | re.DOTALL)
_STATUS = re.compile(r"@srun (-?\d{1,9})", re.ASCII)
_NODE = re.compile(r"@node ([A-Za-z0-9_.-]{1,253})", re.ASCII)
_NO_SRUN = 127
_GIVEN_UP = 124
_READY = {"idle", "mixed", "planned"}


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to a probe. ``login`` is the answer of the contacted machine, usually a login node.
    ``nodes`` maps the names of compute nodes to their answers.

    The keys of ``silent`` are the nodes that did not answer completely; each value is the reason. ``trouble``
    says why no compute node answered; it is empty if a node answered. ``ended`` is false if the output stops
    before the end of the nodes' answers.
    """

    login: str
    nodes: dict[str, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    trouble: str = ""
    ended: bool = True


def separate(text: str, choice: NodeChoice) -> Answers:
    """Split the output of ``containers/nodes.sh``. ``text`` may also be the output of
    ``containers/probe.sh``, which contains only the answer of the contacted machine.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if NODES not in lines:
        why = "toolkit did not probe these nodes" if choice.is_empty else NO_ANSWER
        return Answers(text, trouble=why, ended=choice.is_empty)
    start = lines.index(NODES)
    login, rest = "\n".join(lines[:start]), lines[start + 1 :]
    nodes = {name: body for name, body in _nodes(rest) if name}
    status = next((int(m[1]) for line in rest if (m := _STATUS.fullmatch(line))), _GIVEN_UP)
    errors = [line[1:].strip() for line in rest if line.startswith("!")]
    whole = {name: body for name, body in nodes.items() if "\n@end\n" in body}
    silent = {name: "its answer was incomplete" for name in nodes if name not in whole}
    silent |= {name: why for name, why in _unheard(rest, choice) if name not in nodes}
    return Answers(
        login,
        whole,
        silent,
        "" if whole else _trouble(status, errors, choice, incomplete_node=fold(nodes)),
        ended="@nodesend" in rest,
    )


def _nodes(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the answer of each node, from output of ``srun --label``. srun runs one task on each
    node, and precedes each line of output with the task's number.
    """
    tasks: dict[str, list[str]] = {}
    for line in lines:
        if labelled := _LABELLED.fullmatch(line):
            tasks.setdefault(labelled[1], []).append(labelled[2])
    for task_lines in tasks.values():
        name = next((m[1] for line in task_lines if (m := _NODE.fullmatch(line))), "")
        body = task_lines[task_lines.index(VERSION) :] if VERSION in task_lines else []
        yield name, "\n".join(body) + "\n"


def _unheard(lines: list[str], choice: NodeChoice) -> Iterator[tuple[str, str]]:
    """Yield the name of each requested node, and the text that toolkit reports if this node did not
    answer.
    """
    states: dict[str, str] = {}
    for line in lines:
        row = line.split("|")
        if len(row) == 4 and not row[0] and _is_partition(row[3], choice.partition):
            states.setdefault(row[1], row[2])
    if choice.nodes == "all":
        for name, state in states.items():
            skipped = f"toolkit did not probe this node, which is {state}"
            yield name, "did not answer" if state in _READY else skipped
    elif not choice.nodes.isdecimal():
        for name in expand(choice.nodes):
            yield name, "did not answer"


def _is_partition(partition: str, names: str) -> bool:
    return partition.rstrip("*") in names.split(",") if names else partition.endswith("*")


def _trouble(status: int, errors: list[str], choice: NodeChoice, *, incomplete_node: str) -> str:
    if errors:
        error = f"srun: {errors[0]}"
        return f"no node answered within {choice.wait} s: {error}" if "busy" in error else error
    if status == _NO_SRUN:
        return "srun was not found"
    if incomplete_node:
        return f"the answer of {incomplete_node} was incomplete"
    return f"no node answered within {choice.wait} s"
