"""Parse the ``WWW-Authenticate`` header of a response with status 401.

Sources: RFC 9110, section 11.6.1; documentation of the registry server ``distribution``, "Token
Authentication".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SCHEME = re.compile(r"[ \t,]*(?P<scheme>[A-Za-z0-9!#$%&'*+.^_`|~-]+)(?=[ \t,]|$)")
_PARAMETER = re.compile(
    r"[ \t,]*(?P<name>[A-Za-z0-9!#$%&'*+.^_`|~-]+)[ \t]*=[ \t]*"
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^ \t,"]+))'
)
_TOKEN68 = re.compile(r"[ \t]+[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))")
_LONGEST = 8192
"""The largest number of characters of the header that toolkit parses; real headers have a few hundred."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """An authentication method that a server accepts, such as ``bearer`` with the parameter ``realm``.
    ``scheme`` and the names of the parameters are in lower case.
    """

    scheme: str
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_challenges(header: str) -> tuple[Challenge, ...]:
    """Return the challenges in a ``WWW-Authenticate`` header, in the header's order. The function stops at
    the first invalid part of the header.
    """
    text, position = header[:_LONGEST], 0
    challenges: list[Challenge] = []
    while match := _SCHEME.match(text, position):
        position = match.end()
        parameters: dict[str, str] = {}
        while parameter := _PARAMETER.match(text, position):
            value = parameter["plain"] or re.sub(r"\\(.)", r"\1", parameter["quoted"] or "")
            parameters[parameter["name"].lower()] = value
            position = parameter.end()
        if not parameters and (token := _TOKEN68.match(text, position)):
            position = token.end()
        challenges.append(Challenge(match["scheme"].lower(), parameters))
    return tuple(challenges)
