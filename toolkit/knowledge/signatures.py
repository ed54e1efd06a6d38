"""``signatures.toml``: what lines of job output mean."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.finding import Severity


class LogSignature(Row, frozen=True, kw_only=True):
    """A line of job output that tells a cause; ``sample`` is a real line that the pattern must find.

    ``then`` are patterns of lines that must follow soon, where one line does not tell enough. ``overcome`` is
    the pattern of a line that shows that the ranks came through it all the same.
    ``finding`` is the id of the rule that foresees it, or empty text where none does. ``general``
    marks what says that something failed and not why; it is left out where a cause is found. ``alive``: it
    tells nothing once Slurm has begun to end the step, as ranks then lose the file system under them.
    """

    id: str
    pattern: str
    title: str
    fix: str
    sample: str
    then: tuple[str, ...] = ()
    overcome: str = ""
    severity: Severity = "error"
    finding: str = ""
    general: bool = False
    alive: bool = False


class SignatureKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``signatures.toml``, in the order of a launch: causes stand before their consequences."""

    signature: tuple[LogSignature, ...]


@cache
def signatures() -> tuple[LogSignature, ...]:
    """Return the catalogue of job output."""
    return read("signatures", SignatureKnowledge).signature
