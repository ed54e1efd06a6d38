"""No pattern that reads what others wrote takes more than linear time, whatever stands in it."""

import re
import time
from importlib import import_module


from toolkit import knowledge
from toolkit.engine.joblines import LONGEST

_parser = import_module("re._parser")
MODULES = (
    "toolkit.engine.alone",
    "toolkit.engine.explain",
    "toolkit.engine.joblines",
    "toolkit.launch.output",
    "toolkit.launch.times",
    "toolkit.launch.live",
    "toolkit.launch.again",
    "toolkit.launch.process",
    "toolkit.probe.answers",
    "toolkit.probe.hostlist",
    "toolkit.image.mca",
    "toolkit.image.mpi",
    "toolkit.image.config",
    "toolkit.image.scripts",
    "toolkit.image.cuda",
    "toolkit.image.python",
)


def patterns() -> dict[str, re.Pattern[str]]:
    """Return every pattern of the catalogue and of the modules, by what it is called."""
    found = {}
    for signature in knowledge.signatures():
        for pattern in (signature.pattern, *signature.then, *filter(None, [signature.overcome])):
            found[f"{signature.id}: {pattern[:60]}"] = re.compile(pattern, re.MULTILINE)
    for module in MODULES:
        for name, value in vars(import_module(module)).items():
            if isinstance(value, re.Pattern):
                found[f"{module}.{name}"] = value
    return found


def runs(sequence) -> list[str]:
    """Return the texts that stand in a pattern, each branch of it on its own."""
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
    """Return what makes a pattern begin again and again: its own texts, alone and with what may follow."""
    text = pattern.pattern
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    own = dict.fromkeys(runs(_parser.parse(text)))
    units = dict.fromkeys((*own, *(f"{unit}{more}" for unit in own for more in ("a", " "))))
    return [*units, " ", "0", "a", "/", ".", "a.", "0.", "  a", "\\", "\"a"]


def seconds(pattern: re.Pattern, text) -> float:
    """Return the processor time in which all of a text is searched, the least of three."""
    spent = []
    for _ in range(3):
        begun = time.process_time()
        for _ in pattern.finditer(text):
            pass
        spent.append(time.process_time() - begun)
        if spent[-1] < FLOOR:
            break
    return min(spent)


FLOOR = 0.003
"""Seconds below which a clock tells nothing: 8 kB in it are 3 MB/s."""


def slow(pattern: re.Pattern) -> str:
    """Return the repeat that a pattern takes more than linear time for; empty text where there is none."""
    for unit in repeated(pattern):
        size = LONGEST if pattern.pattern.__class__ is str else 8000
        long = [(unit * (size // len(unit) + 1))[:size]] * 4
        short = [(unit * (size // len(unit) + 1))[: size // 4]] * 16
        texts = ["\n".join(lines) for lines in (long, short)]
        if isinstance(pattern.pattern, bytes):
            texts = [text.encode("latin-1", "replace") for text in texts]
        if (took := seconds(pattern, texts[0])) > FLOOR and took > 2 * seconds(pattern, texts[1]) + FLOOR:
            return f"{unit!r}: {took:.3f} s for 8 kB in lines of {size}"
        if took > 5 * FLOOR:
            return f"{unit!r}: {took:.3f} s for 8 kB"
    return ""


def test_no_pattern_takes_more_than_linear_time_on_its_own_texts_again_and_again():
    """Lines four times as long, as many bytes in all, take no more than twice as long."""
    offenders = {name: said for name, pattern in patterns().items() if (said := slow(pattern))}
    assert offenders == {}
