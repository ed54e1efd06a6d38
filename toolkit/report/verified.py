"""Format the checks of an image file as text."""

from collections.abc import Iterator

from toolkit.model.verified import Outcome, Verified

_MARKS: dict[Outcome, str] = {"ok": "ok", "failed": "FAILED", "not-checked": "-"}


def lines(verification: Verified) -> Iterator[str]:
    """Yield a line for each check of the image file. After the line of a check, yield a line for each
    difference that this check found.
    """
    for check in verification.checks:
        yield f"{_MARKS[check.outcome]:<7} {check.name:<10} {check.told}"
        for detail in check.detail:
            yield f"{'':<19}{detail}"
