"""Format the results of a sweep as a table in text and CSV. A sweep is a job with one task for each
combination of option values.
"""

import csv
import io

from toolkit.report.table import table
from toolkit.study.tasks import SweepResult, TaskResult


def sweep_text(result: SweepResult, width: int | None) -> str:
    """Return a table with one row per task: the values of the swept options, the state and the metrics. ``*``
    marks the best value of each metric.
    """
    names, columns = _columns(result)
    rows = [
        (task.index, *task.values.values(), _state(task), *(_cell(result, task, name) for name in columns))
        for task in result.tasks
    ]
    text = table(("task", *names, "state", *columns), rows, width)
    if result.best:
        return f"{text}\n\n* marks the best value of a metric among the completed tasks"
    return text if columns else f"{text}\n\ntoolkit found no metrics in the output of the tasks"


def sweep_csv(result: SweepResult) -> str:
    """Return the table of a sweep as CSV."""
    names, columns = _columns(result)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("task", *names, "state", "exit_code", *columns))
    for task in result.tasks:
        code = "" if task.exit_code is None else task.exit_code
        figures = (task.figures.get(name, "") for name in columns)
        writer.writerow((task.index, *task.values.values(), task.state, code, *figures))
    return text.getvalue()


def _columns(result: SweepResult) -> tuple[list[str], list[str]]:
    names = [*result.tasks[0].values] if result.tasks else []
    return names, [*dict.fromkeys(name for task in result.tasks for name in task.figures)]


def _state(task: TaskResult) -> str:
    return f"{task.state}, exit code {task.exit_code}" if task.exit_code else task.state


def _cell(result: SweepResult, task: TaskResult, name: str) -> str:
    value = task.figures.get(name)
    if value is None:
        return ""
    return f"{value:.6g}{'*' if result.best.get(name) == task.index else ''}"
