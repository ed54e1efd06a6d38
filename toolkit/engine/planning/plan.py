"""Plan a launch. Only this module decides which command starts the ranks of a job."""

import msgspec

from toolkit.engine.planning.proposal import propose
from toolkit.engine.planning.site_additions import add_site_settings
from toolkit.engine.search_path import apply_search_path
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
    """Return the complete plan of a launch in ``mode``: every word, variable and bind, even if the launch
    will fail.

    toolkit judges, prints and records the plan, and writes the plan into the job script. Other modules may
    change only the form of a runtime option in the plan: ``--net host`` becomes ``--network=host``. toolkit
    applies a ``fix`` only if the fix is for the launch mode ``mode``.
    """
    asked = Plan(mode=mode, launcher=(), env={**(site.env if site else {}), **request.env})
    proposed = propose(host, apply_search_path(host, image, asked), request, mode)
    made = add_site_settings(proposed, host, image, request, site)
    return _with_fix(made, fix) if fix and fix.mode == mode else made


def _with_fix(proposal: Plan, fix: LaunchFix) -> Plan:
    present = _options(proposal.container)
    added = (word for option in _options(fix.container) if option not in present for word in option)
    return msgspec.structs.replace(
        proposal,
        container=(*proposal.container, *added),
        env={**proposal.env, **fix.env},
        unset=tuple(dict.fromkeys((*proposal.unset, *fix.unset))),
        binds=tuple(dict.fromkeys((*proposal.binds, *fix.binds))),
    )


def _options(words: tuple[str, ...]) -> list[list[str]]:
    """Split words into options with their values: ``--env A=1 --sharens`` contains two options."""
    found: list[list[str]] = []
    for word in words:
        if word.startswith("-") or not found:
            found.append([])
        found[-1].append(word)
    return found
