"""Find metrics such as ``loss: 0.31`` and ``412.5 images/s`` in a program's output (pure functions)."""

import math
import re
from collections.abc import Mapping

_SIGNS = ("loss", "error", "mse", "mae", "rmse", "perplexity", "ppl")
"""If the name of a metric contains one of these words, its smallest value is the best."""

_PART = r"(?:val|valid|validation|test|train|training|eval)"
_WORDS = r"accuracy|acc|auc|f1|iou|dice|bleu|score|reward|top1|top5"
_NAME = rf"(?:{_PART}[_ /-])?(?:[a-z]{{1,20}}_)?(?:{'|'.join(_SIGNS)}|{_WORDS})"
_RATE = r"(?:images|img|samples|examples|tokens|steps)[ \t]?/[ \t]?s(?:ec)?"
_NUMBER = r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+|nan|inf)"
_NAMED = re.compile(
    rf"(?<![\w.])['\"]?(?P<name>{_NAME})['\"]?(?:[ \t]*[:=][ \t]*|[ \t]+)(?P<value>{_NUMBER})(?![\w.]*[a-z])",
    re.IGNORECASE,
)
_NAMED_SPEED = re.compile(
    rf"(?<![\w.])(?P<name>{_RATE})['\"]?[ \t]*[:=][ \t]*(?P<value>{_NUMBER})", re.IGNORECASE
)
_SPEED = re.compile(
    rf"(?P<value>{_NUMBER})[ \t]*(?P<name>{_RATE})\b(?![ \t]*[:=][ \t]*{_NUMBER})", re.IGNORECASE
)
_LABEL = re.compile(r" *(\d{1,7}): ")
"""A pattern for the prefix that ``srun --label`` adds to a line: the rank's number."""

_LONGEST = 2000


def figures(text: str) -> dict[str, float]:
    """Return the last value of each metric in a program's output. If lines have rank labels (such as
    ``0: `` from ``srun --label``), the function reads only the lines of rank 0.

    >>> figures("0: epoch 1 loss: 0.7\\n0: epoch 2 loss: 0.5, val_accuracy=0.9")
    {'loss': 0.5, 'val_accuracy': 0.9}
    """
    figures_by_name: dict[str, float] = {}
    for line in text.splitlines():
        # A later value of a metric replaces its earlier value.
        # The metrics keep the order in which they first occur.
        figures_by_name.update(_of_line(line))
    return figures_by_name


def history(text: str) -> list[dict[str, float]]:
    """Return one dictionary of metrics for each line of a program's output that contains metrics. If lines
    have rank labels, the function reads only the lines of rank 0.

    If a program overwrites a line, as a progress bar does, the function reads only the last text of the line.

    >>> history("epoch 1 loss: 0.7\\n1/2 loss: 0.6\\r2/2 loss: 0.5\\ndone")
    [{'loss': 0.7}, {'loss': 0.5}]
    """
    rows = (_of_line(line.rstrip("\r").rpartition("\r")[2]) for line in text.split("\n"))
    return [row for row in rows if row]


def _of_line(line: str) -> dict[str, float]:
    label = _LABEL.match(line)
    if label and int(label[1]):
        return {}
    figures_by_name = {}
    for pattern in (_NAMED, _NAMED_SPEED, _SPEED):
        for match in pattern.finditer(line[:_LONGEST]):
            name = re.sub(r"[ \t-]+", "_", match["name"].lower())
            figures_by_name[re.sub("_?/_?s(ec)?$", "/s", name)] = float(match["value"])
    return figures_by_name


def best(rows: Mapping[int, Mapping[str, float | None]]) -> dict[str, int]:
    """Return, for each metric, the number of the array task with the best value.

    ``rows`` maps the number of each task to the task's metrics. NaN and infinity are never the best value.
    The result leaves out metrics with fewer than two finite values.
    """
    names = dict.fromkeys(name for row in rows.values() for name in row)
    figures_by_name = {}
    for name in names:
        sign = 1 if any(word in name for word in _SIGNS) else -1
        values = ((row.get(name), number) for number, row in rows.items())
        known = [
            (sign * value, number) for value, number in values if value is not None and math.isfinite(value)
        ]
        if len(known) > 1:
            figures_by_name[name] = min(known)[1]
    return figures_by_name
