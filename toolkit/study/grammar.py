"""Check the values in ``study.json``, because another user may have written the file (pure functions)."""

from collections.abc import Iterator

from toolkit.model.study import Study

_MOST_RUNS = 100_000
_LONGEST = 300


def faults(study: Study) -> Iterator[str]:
    """Yield a sentence for each invalid field of a study. The sentence starts with the field's name."""
    texts = {
        "name": study.name,
        "created": study.created,
        "compare": study.compare,
        "unit": study.unit,
        "source": study.source,
        **{f"values[{number}]": value for number, value in enumerate(study.values)},
    }
    for field, text in texts.items():
        if not text.isprintable() or len(text) > _LONGEST:
            yield f"{field}: expected one line of printable text, at most {_LONGEST} characters"
    for number, size in enumerate(study.sizes):
        if size.nodes < 1 or size.ranks < size.nodes or size.ranks % size.nodes:
            yield f"sizes[{number}]: expected a number of ranks that can be divided evenly among the nodes"
    if study.repeats < 1:
        yield "repeats: expected at least 1"
    if study.repeats * len(study.sizes) * max(1, len(study.values)) > _MOST_RUNS:
        yield f"repeats: expected at most {_MOST_RUNS} runs in total (repeats times sizes times values)"
