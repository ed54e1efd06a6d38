"""Test the shipped profiles of current machines: sources, dates, and their settings in the job script."""

import re

import msgspec

from tests.unit.launch import site_scripts
from tests.unit.tables import every_row
from toolkit.knowledge import sites
from toolkit.model.site import Site

LIVING = [name for name in sites.names() if name != "virtual"]
DATED = [name for name in LIVING if sites.site(name).checked]
_PLAIN = {
    "schema",
    "title",
    "centre",
    "tested",
    "notes",
    "sources",
    "checked",
    "expires",
    "directory",
    "scratch",
}
"""Fields that need no source: they describe the profile itself or name the user's folders."""


def test_at_least_twelve_machines_run_today_and_the_retired_ones_are_apart():
    assert len(LIVING) >= 12
    retired = set(sites.names(historic=True)) - set(sites.names())
    assert {"cori-knl", "cte-power", "davide", "marconi", "piz-daint"} <= retired
    assert all(sites.site(name).retired and sites.find(name).parent.name == "historic" for name in retired)
    assert not any(sites.site(name).retired or sites.find(name).parent.name == "historic" for name in LIVING)


@every_row("name", DATED)
def test_each_field_has_a_source_with_a_date(name):
    site = sites.site(name)
    given = {
        f
        for f in Site.__struct_fields__
        if getattr(site, f) != getattr(Site(schema=site.schema, title=""), f)
    }
    named: set[str] = set()
    for source in site.sources:
        assert re.search(r"\d{4}-\d\d-\d\d", source), source
        named |= set(re.findall(r"\w+", source.rpartition("(")[2]))
    assert given - _PLAIN <= named


@every_row("name", DATED)
def test_a_profile_says_that_it_is_old(name):
    site = sites.site(name)
    assert site.checked < site.expires
    assert not sites.is_old(site, site.checked)
    assert sites.is_old(site, site.expires)
    assert not sites.is_old(msgspec.structs.replace(site, expires=""), "2100-01-01")


@every_row("name", LIVING)
def test_the_script_of_a_site_has_its_recipe(name):
    site, script = sites.site(name), site_scripts.made(name)
    assert "toolkit never contacted" in site.notes or not site.checked
    assert not [m for m in site.modules if f"module {'load ' if ' ' not in m else ''}{m}" not in script]
    wanted = [*(bind.partition(":")[0] for bind in site.container.binds), *site.env, *site.launch.srun]
    assert not [word for word in wanted if word not in script]
    assert site.container.command in script
