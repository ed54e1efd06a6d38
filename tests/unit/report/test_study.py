"""Test the report of a study as a page, plots, tables and text."""

import csv
import io
import json
import re
import warnings
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import msgspec
import pytest

from tests.unit.study.studies import BSC, SHARES, kept, point, study
from tests.unit.tables import every_row
from tests.unit.terminal import FORGED, assert_harmless
from toolkit.errors import CheckFailed
from toolkit.report.study import plot_style, study_plots, study_tables
from toolkit.report.study.study_page import page
from toolkit.report.study.study_plots import plots
from toolkit.report.study.study_text import text_of
from toolkit.study.report import read

SIZES = [(1, 1), (2, 1), (4, 2)]
HOSTILE = 'a<script>alert("x")</script>&{b}$\\frac{$'


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a report of two studies; one study has a timeline, a failed run and a malicious name."""
    points = [
        point(n, s, nodes=m, number=i)
        for (n, m), s in zip(SIZES, (8.0, 4.4, 2.6), strict=True)
        for i in (1, 2)
    ]
    timed = point(4, 9.0, nodes=2, profile=True, shares=SHARES)
    failed = point(2, 1.0, number=3, state="failed", figures=None, why=f"exit code 7 {HOSTILE}")
    first = kept(
        tmp_path_factory.mktemp("a") / "one", study(SIZES, repeats=3, profile=True), [*points, timed, failed]
    )
    others = [point(n, s, nodes=m) for (n, m), s in zip(SIZES, (20.0, 11.0, 6.0), strict=True)]
    second = kept(tmp_path_factory.mktemp("b") / "two", study(SIZES, name=HOSTILE), others)
    return read([first, second])


@pytest.fixture(scope="module")
def drawn(whole):
    return plots(whole)


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open, self.outside, self.ids, self.refs = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in {"meta", "br", "path", "use"}:
            self.open.append(tag)
        for name, value in attrs:
            if name in {"href", "src", "xlink:href"} and not (value or "").startswith("#"):
                self.outside.append(value)
            elif name in {"href", "xlink:href"}:
                self.refs.append(value[1:])
            elif name == "id":
                self.ids.append(value)
            self.refs += re.findall(r"url\(#([^)]+)\)", value or "")

    def handle_startendtag(self, tag, attrs):
        before = list(self.open)
        self.handle_starttag(tag, attrs)
        self.open = before

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing(whole, drawn):
    text = page(whole, drawn)
    parsed = _Page()
    parsed.feed(text)
    assert parsed.outside == []
    assert "script" not in parsed.tags
    assert "@import" not in text
    assert parsed.tags.count("figure") == len(drawn) == 7
    assert not parsed.open


def test_parts_of_plots_are_found_by_names_that_are_there_once(whole, drawn):
    parsed = _Page()
    parsed.feed(page(whole, drawn))
    assert len(parsed.ids) == len(set(parsed.ids))
    assert parsed.refs
    assert set(parsed.refs) <= set(parsed.ids)


def test_the_page_says_what_was_measured_where_and_what_is_left_out(whole, drawn):
    text = page(whole, drawn)
    for said in (
        "What limits the speed most",
        "sha256:abab",
        "srun --mpi=pmix",
        "These runs failed",
        "exit code 7",
    ):
        assert said in text
    assert "&lt;script&gt;" in text
    assert "mnist: 1 rank on 1 node, run 3" in text


def words_of(plot):
    return " ".join(ET.fromstring(plot.svg).itertext())  # noqa: S314 - our own


def test_every_plot_is_a_drawing_with_its_words_as_words(drawn):
    for plot in drawn:
        assert plot.png.startswith(b"\x89PNG")
        words = words_of(plot)
        assert plot.title in words
    time = next(plot for plot in drawn if plot.name == "epoch-time")
    assert "predicted, 95 %" in words_of(time)


def test_no_two_of_many_lines_look_alike():
    assert len({(plot_style.color(n), plot_style.marker(n)) for n in range(56)}) == 56


def test_equal_figures_give_equal_files(whole, drawn):
    again = plots(whole)
    assert [(p.svg, p.png) for p in again] == [(p.svg, p.png) for p in drawn]


def test_a_study_without_shares_and_accuracy_has_the_other_plots():
    assert [name for name, *_ in study_plots._kinds(read([BSC]))] == ["epoch-time", "speed-up", "efficiency"]


def test_the_table_holds_what_is_measured_and_marks_what_is_not(whole):
    rows = list(csv.DictReader(io.StringIO(study_tables.csv_of(whole))))
    mine = [row for row in rows if row["series"].startswith("mnist")]
    assert [(row["kind"], row["ranks"]) for row in mine] == [
        ("measured", "1"), ("measured", "2"), ("measured", "4"), ("predicted", "8"), ("predicted", "16"),
        ("predicted", "32"),
    ]  # fmt: skip
    assert float(mine[1]["speedup"]) == pytest.approx(8 / 4.4, rel=1e-5)
    assert float(mine[2]["communication"]) == pytest.approx(0.4)
    assert mine[0]["communication"] == ""
    assert [row["waiting"] for row in mine[:3]] == ["", "", ""]
    guess = mine[3]
    assert float(guess["seconds_low"]) <= float(guess["seconds"]) <= float(guess["seconds_high"])


def test_latex_holds_no_character_that_means_something_there(whole):
    text = study_tables.latex_of(whole)
    assert text.startswith("\\begin{tabular}")
    assert r"\&\{b\}" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {6}


@every_row("begin", ["=", "+", "-", "@", "\uff1d"])
def test_a_label_is_no_formula_in_a_spreadsheet(tmp_path, begin):
    name = f"{begin}cmd|' /C calc'!A0"
    report = read([kept(tmp_path, study([(1, 1)], name=name), [point(1, 8)])])
    (row,) = csv.DictReader(io.StringIO(study_tables.csv_of(report)))
    assert row["series"] == f"'{name}"
    assert float(row["seconds"]) == 8


def test_no_form_of_a_report_holds_a_hidden_character_or_a_line_of_a_label(tmp_path):
    """A folder's name and a failure's message can contain any text, because toolkit does not check them."""
    hostile = f"a\x1b[2J\u202e\x9b\u200b\n{FORGED}"
    failed = point(2, 1, number=2, state="failed", figures=None, why=hostile)
    sizes = study([(1, 1), (2, 1)], repeats=2)
    folders = [kept(tmp_path / name, sizes, [point(1, 8), point(2, 4), failed]) for name in (hostile, "b")]
    report = read(folders)
    with warnings.catch_warnings(action="ignore"):  # matplotlib warns about glyphs that its font lacks
        drawn = plots(report)
    forms = [page(report, drawn), *(plot.svg for plot in drawn)]
    for text in (text_of(report), study_tables.csv_of(report), study_tables.latex_of(report)):
        assert_harmless(text.encode())
    assert sum("\\u202e" in text for text in forms) > 1
    for text in forms:
        assert_harmless(text.replace(FORGED, "").encode())


def test_json_tells_the_model_and_its_check(whole):
    told = json.loads(study_tables.json_of(whole))
    assert told["schema"] == "toolkit.scaling/1"
    first = told["series"][0]
    assert len(first["model"]["weights"]) == 3
    assert first["check"]["ranks"] == 4
    assert told["left_out"] == [f"mnist: 2 ranks on 1 node, run 3: exit code 7 {HOSTILE}"]
    assert len(told["missing"]) == 3


def test_a_terminal_is_told_the_same(whole):
    text = text_of(whole, 90)
    assert "~8" in text
    assert "marks a prediction" in text
    assert "What limits the speed most" in text
    assert "Failed runs:" in text
    assert "Not measured yet: 3 runs" in text


def test_the_published_series_reads_as_it_was_published():
    text = text_of(read([BSC]))
    assert re.search(r"4 +1 +12 .* 3\.75 +94 %", text)
    assert "3.75 times as fast as on 1 rank" in text


def test_what_ranks_wait_for_samples_is_in_plot_table_and_words(tmp_path, monkeypatch):
    points = [
        point(1, 8.0, waiting=0.2),
        point(2, 6.0, waiting=0.3),
        point(2, 9.0, profile=True, shares=SHARES),
    ]
    report = read([kept(tmp_path, study([(1, 1), (2, 1)], profile=True), points)])
    kinds = [kind for kind in study_plots._kinds(report) if kind[0] == "communication"]
    monkeypatch.setattr(study_plots, "_kinds", lambda _: kinds)
    (drawn,) = plots(report)
    assert "waiting for samples" in words_of(drawn)
    assert "1 rank on 1 node" in words_of(drawn)
    text = page(report, [])
    assert "<th>waiting for samples</th>" in text
    assert "<td>30 %</td>" in text
    assert "each rank waits for training samples 30 % of the time" in text
    rows = list(csv.DictReader(io.StringIO(study_tables.csv_of(report))))
    assert [row["waiting"] for row in rows[:2]] == ["0.2", "0.3"]


def test_series_are_named_by_what_they_differ_in(tmp_path):
    points = [point(1, s, series=value) for value, s in (("1", 4.0), ("5", 5.0))]
    kept(tmp_path, study([(1, 1)], compare="HOROVOD_CYCLE_TIME", values=("1", "5")), points)
    assert [line.label for line in read([tmp_path]).lines] == ["HOROVOD_CYCLE_TIME 1", "HOROVOD_CYCLE_TIME 5"]


def test_studies_of_one_name_are_told_apart_by_their_folders(tmp_path):
    folders = [kept(tmp_path / name, study([(1, 1)]), [point(1, 4.0)]) for name in ("before", "after")]
    assert [line.label for line in read(folders).lines] == ["before", "after"]


def test_a_study_without_a_figure_is_no_report(tmp_path):
    with pytest.raises(CheckFailed, match="the study has no measured run yet"):
        read([kept(tmp_path, study([(1, 1)]), [])])


@pytest.fixture
def slow(tmp_path):
    times = [(1, 3457.2), (1, 3480.0), (2, 2381.0)]
    points = [point(n, s, number=i, nodes=1) for i, (n, s) in enumerate(times, 1)]
    return read([kept(tmp_path, study([(1, 1), (2, 1)], repeats=2), points)])


def test_slow_rates_and_long_times_are_told_with_the_digits_that_count(slow):
    (first, *_), text, tex = study_tables.rows(slow), text_of(slow), study_tables.latex_of(slow)
    assert first.rate < 1
    assert re.search(r"1 +1 +3,469 +3,457-3,480 +0\.288", text)
    assert r"$3\,469 \pm 11$ & 0.288 &" in tex
    shown = page(slow, [])
    assert "<td>3,469<small>3,457 &ndash; 3,480</small></td>" in shown
    assert "<td>0.288<small>0.287 &ndash; 0.289</small></td>" in shown
    assert not re.search(r"\de\+", text + tex + shown)


def test_studies_of_epochs_and_of_units_have_a_heading_for_both(tmp_path, whole):
    figures = msgspec.structs.replace(point(1, 4.0).figures, samples=None, epochs=(), parameters=None)
    command = study([(1, 1)], said={}, words=("bench",), name="bench", unit="tokens")
    folders = [
        kept(tmp_path / "one", study([(1, 1)]), [point(1, 4.0)]),
        kept(tmp_path / "two", command, [point(1, 4.0, figures=figures)]),
    ]
    both = read(folders)
    assert "s/epoch or 1,000 tokens" in text_of(both)
    assert "<th>s/epoch or 1,000 tokens</th>" in page(both, [])
    assert "s/epoch or 1,000 tokens &" in study_tables.latex_of(both)
    assert next(study_plots._kinds(both))[1] == "Time of an epoch or 1,000 tokens, seconds"
    assert "s/epoch " in text_of(whole)


def test_a_study_of_a_command_counts_in_its_own_unit(tmp_path):
    figures = msgspec.structs.replace(point(1, 4.0).figures, samples=None, epochs=(), parameters=None)
    kept(
        tmp_path, study([(1, 1)], said={}, words=("bench",), unit="tokens"), [point(1, 4.0, figures=figures)]
    )
    text = text_of(read([tmp_path]))
    assert "s/1,000 tokens" in text
    assert "tokens/s" in text
