"""Read which findings ``toolkit doctor`` hides."""

import os
from collections.abc import Iterable

from toolkit.engine.registry import RULES
from toolkit.errors import BadInput
from toolkit.job.request.layering import read_settings
from toolkit.knowledge import sites
from toolkit.launch.request import layers
from toolkit.model.site import Site
from toolkit.near import suggest_near


def silenced_findings(site: Site | None = None) -> dict[str, str]:
    """Return the ids of the findings that ``toolkit doctor`` hides, each with the reason.

    The ids are from the site profile, the user's settings file and ``toolkit.toml``. If ``site`` is ``None``,
    toolkit reads the profile that a settings file or the variable ``TOOLKIT_SITE`` names.

    Raises:
        BadInput: if one of these files is wrong, or an id is not the id of a rule.
    """
    settings = read_settings()
    if site is None:
        fields = layers.merge([*(file.layer for file in settings), layers.from_variables(os.environ)]).job
        site = sites.site(fields.site) if fields.site is not None else None
    found = dict(site.silence) if site else {}
    for file in settings:
        found |= file.silence
    check_ids(found)
    return found


def check_ids(ids: Iterable[str]) -> None:
    """Check that each id in a table ``silence`` is the id of a rule.

    Raises:
        BadInput: if an id is unknown; the message suggests a similar id.
    """
    known = [rule.id for rule in RULES]
    for name in ids:
        if name not in known:
            raise BadInput(
                f"silence.{name}: unknown finding{suggest_near(name, known)}",
                fix="list the ids: `toolkit doctor --rules`",
            )
