"""Plan a launch: the only place that decides what is run to start the ranks of a job; pure."""

import msgspec

from toolkit.engine.proposal import propose
from toolkit.engine.searched import searched
from toolkit.engine.surroundings import surrounded
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.fix import LaunchFix
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.model.site import Site


def plan(
    host: HostFacts,
    image: ImageFacts,
    request: Request,
    mode: Mode,
    site: Site | None = None,
    fix: LaunchFix | None = None,
) -> Plan:
    """Return every word, variable and bind of a launch in ``mode``, whether or not it will work.

    Nothing changes it afterwards: it is judged, shown, written into the job script and kept in the record.
    A ``fix`` counts in its own mode.
    """
    asked = Plan(mode=mode, launcher=(), env={**(site.env if site else {}), **request.env})
    proposed = propose(host, searched(host, image, asked), request, mode)
    made = surrounded(proposed, host, image, request, site)
    return _with_fix(made, fix) if fix and fix.mode == mode else made


def _with_fix(made: Plan, fix: LaunchFix) -> Plan:
    present = _options(made.container)
    added = (word for option in _options(fix.container) if option not in present for word in option)
    return msgspec.structs.replace(
        made,
        container=(*made.container, *added),
        env={**made.env, **fix.env},
        unset=tuple(dict.fromkeys((*made.unset, *fix.unset))),
        binds=tuple(dict.fromkeys((*made.binds, *fix.binds))),
    )


def _options(words: tuple[str, ...]) -> list[list[str]]:
    """Return options with their values: ``--env A=1 --sharens`` is two of them."""
    found: list[list[str]] = []
    for word in words:
        if word.startswith("-") or not found:
            found.append([])
        found[-1].append(word)
    return found
