"""The doctor's page at the widths of terminals."""

import re

import pytest

from tests.matrix.record import load
from tests.unit.engine.examples import HOST, IMAGE, with_
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Request
from toolkit.report.doctor import host_page, page

COMMAND = "toolkit launch --image 'my image.sif' --nodes 2 --host LOGIN_NODE -- COMMAND"


def shown(width: int, host: HostFacts = HOST, image: ImageFacts = IMAGE) -> str:
    request = Request()
    verdict = predict(host, image, request)
    return page(host, image, verdict, request, next_command=COMMAND, advice="Do it.", width=width)


def words(text: str) -> set[str]:
    return {word for word in re.split(r"[\s,;()]+", text) if word}


@every_row("width", [30, 40, 50, 60, 72, 80, 100])
def test_lines_fit_but_for_words_that_do_not(width):
    truth = load()
    for name in ("app-mpich-4.3.1", "venv-impi-2021.6.0", "source-openmpi-4.1.4-plugins"):
        text = shown(width, truth.hosts["pmix"], truth.images[name].facts)
        wide = [line for line in text.splitlines() if len(line) > width]
        longest = [max(line.split(), key=len) for line in wide]
        # A line is too wide only for a word that stands alone in it, behind what it is hung on.
        assert all(len(word) + 20 > width - 20 for word in longest), wide
        assert all(len(line.split()) <= 3 for line in wide), wide


def test_a_narrow_page_says_the_same_as_a_wide_one():
    both = words(shown(100)) - {"HOST", "IMAGE"}
    assert words(shown(40)) >= {word for word in both if "/" not in word and not word.startswith("-")}


def test_in_a_narrow_terminal_the_image_stands_below_the_host():
    lines = shown(40).splitlines()
    at = lines.index("  C library")
    assert lines[at + 1 : at + 3] == ["    host   glibc 2.41", "    image  glibc 2.36"]
    assert "    host   glibc 2.41" in host_page(HOST, (), width=40).splitlines()


def test_a_path_in_the_table_begins_a_line_before_it_is_broken():
    launcher = with_(HOST.mpis[0], launcher="/opt/centre/openmpi/bin/mpirun")
    lines = shown(70, with_(HOST, mpis=(launcher,))).splitlines()
    assert any(line.startswith("             /opt/centre/openmpi/bin/") for line in lines)


def test_ids_of_rules_and_modes_are_never_broken():
    narrow = words(shown(40))
    found = predict(HOST, IMAGE, Request()).findings
    assert narrow >= {f.id for f in found} | {mode for f in found for mode in f.modes}


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"amd_gpus": ("gfx90a",) * 8}, "8 \N{MULTIPLICATION SIGN} AMD gfx90a"),
        (
            {"gpu_driver": "550.54.15", "gpus": ("Tesla T4",) * 2},
            "NVIDIA driver 550.54.15, 2 \N{MULTIPLICATION SIGN} Tesla T4",
        ),
        (
            {"gpu_driver": "550.54.15", "amd_gpus": ("gfx1151",)},
            "NVIDIA driver 550.54.15, 1 \N{MULTIPLICATION SIGN} AMD gfx1151",
        ),
    ],
)
def test_gpus_are_told_by_their_maker(facts, told):
    host = HostFacts(place="here", absent={"gpu_driver": "no NVIDIA driver"}, **facts)
    assert told in " ".join(host_page(host, (), width=200).split())
