"""Test that no pattern takes more than linear time on text from other programs."""

import re
import time
from collections.abc import Sequence
from importlib import import_module

from tests.unit.tables import every_row
from tests.unit.thorough import share
from toolkit import knowledge
from toolkit.engine.logs.joblines import LONGEST
from toolkit.engine.logs.world_of_one import CLAIMS
from toolkit.knowledge.signatures import fault_lines

_parser = import_module("re._parser")
SEARCHED = (
    "toolkit.engine.logs.root",
    "toolkit.engine.logs.traceback",
    "toolkit.engine.logs.signature_match",
    "toolkit.launch.live",
)
MATCHED = (
    "toolkit.engine.logs.joblines",
    "toolkit.launch.tracking.output",
    "toolkit.probe.answers",
    "toolkit.probe.hostlist",
)
"""Modules whose patterns toolkit matches only at the beginning of a line."""


def patterns() -> dict[str, re.Pattern[str]]:
    found = {}
    for signature in knowledge.signatures():
        for pattern in (
            *(signature.pattern, *signature.then),
            *filter(None, [signature.overcome, signature.seen, signature.unless]),
        ):
            found[f"{signature.id}: {pattern[:60]}"] = re.compile(pattern, re.MULTILINE)
    for row in fault_lines():
        found |= {f"{row.class_}: {pattern[:60]}": re.compile(pattern) for pattern in row.patterns}
    for module in (*SEARCHED, *MATCHED):
        for name, value in vars(import_module(module)).items():
            if isinstance(value, re.Pattern):
                found[f"{module}.{name}"] = value
    return found | {f"a claim: {pattern[:60]}": re.compile(pattern, re.MULTILINE) for pattern in CLAIMS}


def runs(sequence) -> list[str]:
    """Return the texts that a pattern contains literally, separately for each branch."""
    found, run = [], ""
    for name, value in ((str(operation), value) for operation, value in sequence):
        if name == "LITERAL":
            run += chr(value)
            continue
        found, run = [*found, run], ""
        if name == "SUBPATTERN":
            found += runs(value[3])
        elif name == "BRANCH":
            found += [text for way in value[1] for text in runs(way)]
        elif name in {"MAX_REPEAT", "MIN_REPEAT"}:
            found += runs(value[2])
        elif name in {"ASSERT", "ASSERT_NOT"}:
            found += runs(value[1])
    return [text for text in (*found, run) if text]


def repeated(pattern: re.Pattern) -> list[str]:
    """Return texts that may slow a pattern down when repeated: its literal texts and common characters."""
    text = pattern.pattern
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    own = dict.fromkeys(runs(_parser.parse(text)))
    units = dict.fromkeys((*own, *(f"{unit}{more}" for unit in own for more in ("a", " "))))
    return [*units, " ", "0", "a", "/", ".", "a.", "0.", "  a", "\\", '"a']


def seconds(name: str, pattern: re.Pattern, lines: list) -> float:
    """Return the least CPU time of up to seven searches in lines.

    Stop after a search that takes less than ``FLOOR`` or at least ten times ``FLOOR``.
    """
    begin = pattern.match if name.startswith(MATCHED) else pattern.search
    spent = []
    for _ in range(7):
        begun = time.process_time()
        if name.startswith("toolkit."):
            for line in lines:
                begin(line)
        else:  # signatures are searched in many lines at once
            for _hit in pattern.finditer("\n".join(lines)):
                pass
        spent.append(time.process_time() - begun)
        if not FLOOR <= spent[-1] < 10 * FLOOR:
            break
    return min(spent)


FLOOR = 0.01
"""Seconds below which the clock of a busy machine is too inaccurate."""


def slow(name: str, pattern: re.Pattern, units: Sequence[str] = ()) -> str:
    """Return the repeated text for which a pattern takes more than linear time, or an empty string."""
    for unit in units or repeated(pattern):
        line = (unit * (LONGEST // len(unit) + 1))[:LONGEST]
        texts = [line], [line] * 4, [line[: LONGEST // 4]] * 16
        if isinstance(pattern.pattern, bytes):
            texts = [[one.encode("latin-1", "replace") for one in lines] for lines in texts]
        if seconds(name, pattern, texts[0]) < FLOOR / 8:
            continue  # four lines take less than the floor
        took = seconds(name, pattern, texts[1])
        if took > 5 * FLOOR or (took > FLOOR and took > 2 * seconds(name, pattern, texts[2]) + FLOOR):
            return f"{unit!r}: {took:.3f} s for 8 kB"
    return ""


def test_no_pattern_takes_more_than_linear_time_on_its_own_texts_again_and_again():
    """Search four long lines, and then the same text in 16 short lines. The long lines may take at most
    twice as long as the short lines.
    """
    suspected = {
        name: pattern
        for number, (name, pattern) in enumerate(patterns().items())
        if slow(name, pattern, share(repeated(pattern), number, 3))
    }
    # Measure suspected patterns again, because a clock may be wrong on a busy machine.
    offenders = {name: said for name, pattern in suspected.items() if (said := slow(name, pattern))}
    assert offenders == {}


@every_row(
    "pattern",
    [
        r"(opal_hwloc|hwloc_)\w+.{0,40}(SIGSEGV|Segmentation)",
        r"mca_btl_tcp_endpoint\S*.{0,80}(connect\(\)|received unexpected process identifier)",
        r"ibv_\w+.{0,200}Cannot allocate memory",
    ],
)
def test_a_pattern_that_takes_more_is_noticed(pattern):
    assert slow("a signature", re.compile(pattern, re.MULTILINE))
