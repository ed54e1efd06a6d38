"""Test the manual page of each command, which has the text of its help, and the completion scripts."""

import re
import subprocess

import click

from docs.generate.commands import contexts
from docs.generate.manual import files, manual_page
from tests.unit.tables import every_row
from toolkit import __version__

MADE = files()
_REQUESTS = {".TH", ".SH", ".TP", ".PP", ".B", ".nf", ".fi", ".ad", ".nh", ".RS", ".RE", ".sp"}


def test_every_command_has_a_page():
    named = {ctx.command_path.replace(" ", "-") for ctx in contexts()}
    assert {name for name in MADE if name.startswith("man/")} == {f"man/man1/{name}.1" for name in named}


@every_row("name", [name for name in MADE if name.startswith("man/")])
def test_a_page_has_no_request_and_no_escape_that_is_not_meant(name):
    for line in MADE[name].splitlines():
        assert not line.startswith(("'", ".")) or line.split()[0] in _REQUESTS
        assert not re.sub(r"\\(-|e|&|fB|fP)", "", line).count("\\")
        assert "\b" not in line


def test_words_that_roff_would_take_for_its_own_are_shown():
    command = click.Command("x", help="Begin.\n\n.so /etc/passwd\n\n'tis a back\\slash", params=[])
    text = manual_page(click.Context(command, info_name="x"))
    assert "\n\\&.so /etc/passwd\n" in text
    assert "\n\\&'tis a back\\eslash\n" in text


def test_a_page_is_called_as_it_is_filed_and_shows_what_is_typed():
    text = MADE["man/man1/toolkit-image-build.1"]
    assert text.startswith('.TH "TOOLKIT-IMAGE-BUILD" "1"')
    assert f'"toolkit {__version__}"' in text.splitlines()[0]
    assert "\ntoolkit-image-build \\- " in text
    assert "\n.B toolkit image build\n[OPTIONS] RECIPE\n" in text


def test_bash_takes_its_completion_and_asks_the_program(tmp_path):
    path = tmp_path / "toolkit"
    path.write_text(MADE["bash-completion/completions/toolkit"])
    script = f"source {path}; complete -p toolkit"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert "toolkit" in done.stdout
    for text in (MADE[name] for name in MADE if not name.startswith("man/")):
        assert "_TOOLKIT_COMPLETE=" in text
    assert MADE["zsh/site-functions/_toolkit"].startswith("#compdef toolkit\n")


def test_a_page_says_how_a_command_ends():
    text = MADE["man/man1/toolkit-doctor.1"]
    assert "\n.SH EXIT STATUS\n.TP\n\\fB0\\fP\nThe command succeeded.\n" in text
    assert "\n\\fB130\\fP\n" in text
