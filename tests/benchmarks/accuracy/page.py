"""Write the page on accuracy, from the results and the template page.md."""

import statistics
from pathlib import Path
from string import Template

import msgspec

from tests.benchmarks.accuracy.cases import Reached, cases
from tests.benchmarks.tables import table

_TEMPLATE = Path(__file__).with_name("page.md")


class Found(msgspec.Struct, kw_only=True):
    schema: str = "toolkit.bench.accuracy/1"
    started: str
    processors: int
    reached: list[Reached] = []

    def of(self, group: str) -> list[Reached]:
        return [one for one in self.reached if one.case.group == group]


def page(found: Found) -> str:
    template = Template(_TEMPLATE.read_text("utf-8"))
    return template.substitute(
        started=found.started[:10],
        processors=found.processors,
        groups=table(_groups(found)),
        strategies=table(_strategies(found)),
        runs=table(_runs(found)),
    )


def _groups(found: Found) -> list[tuple[str, ...]]:
    rows = [("Training", "Median", "Each seed"), ("---",) * 3]
    for group, wanted in {one.group: one.wanted for one in cases()}.items():
        accuracies = [one.accuracy for one in found.of(group)]
        if wanted is not None and accuracies:
            each = ", ".join(f"{one:.4f}" for one in accuracies)
            rows.append((group, f"{statistics.median(accuracies):.4f}", each))
    return rows


def _strategies(found: Found) -> list[tuple[str, ...]]:
    rows = [("Strategy", "Ranks", "Samples", "Accuracy", "Difference from `single`"), ("---",) * 5]
    named = {one.group.removeprefix("mnist, "): one.group for one in cases() if one.options}
    single = found.of(named["single"])
    for name, group in named.items():
        for one in found.of(group) if single else ():
            apart = f"{100 * (one.accuracy - single[0].accuracy):+.2f} %"
            rows.append((f"`{name}`", f"{one.world_size}", f"{one.images:,}", f"{one.accuracy:.4f}", apart))
    return rows


def _runs(found: Found) -> list[tuple[str, ...]]:
    rows = [("Command", "Mode", "Accuracy", "Seconds"), ("---",) * 4]
    for case in cases():
        for one in found.reached:
            if one.case == case:
                words = f"`toolkit launch {' '.join(case.launch)}`"
                rows.append((words, one.mode, f"{one.accuracy:.4f}", f"{one.seconds:.0f}"))
    return rows
