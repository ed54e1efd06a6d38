"""Test the distribution's name, which differs from the name of the package and command."""

import importlib.metadata
import re
import tomllib

from tests.built import ROOT
from toolkit import DISTRIBUTION, __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_project_has_this_name_and_this_command():
    assert PROJECT["name"] == DISTRIBUTION
    assert list(PROJECT["scripts"]) == ["toolkit"]
    assert importlib.metadata.version(DISTRIBUTION) == __version__


def test_an_extra_that_names_the_project_itself_names_it_so():
    extras = PROJECT["optional-dependencies"]
    own = [re.match(r"(.+)\[(.+)\]$", line) for lines in extras.values() for line in lines if "[" in line]
    named = {found[1]: found[2] for found in own if found and found[2] in extras}
    assert named == {DISTRIBUTION: "docs"}


def test_the_installer_of_a_bundle_installs_this_distribution():
    lines = (ROOT / "containers" / "install.sh").read_text().splitlines()
    (install,) = (line for line in lines if "--find-links wheels" in line)
    assert install.endswith(f" --upgrade {DISTRIBUTION}")
