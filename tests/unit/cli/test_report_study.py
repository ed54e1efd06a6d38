import json
import sys

import pytest
from click.testing import CliRunner

from tests.unit.study.studies import BSC, TIMELINE, kept, point, study
from toolkit.cli.report import command
from toolkit.errors import BadInput, Missing


def report(*words):
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def folder(tmp_path):
    points = [point(n, 8 / n) for n in (1, 2, 4)]
    return kept(tmp_path / "study", study([(1, 1), (2, 1), (4, 1)]), points)


def test_a_study_becomes_a_page_with_plots_and_tables_beside_it(folder):
    done = report(folder)
    assert "4 times as fast as on 1 rank" in done.stdout
    names = {file.name for file in (folder / "report").iterdir()}
    assert names >= {
        "index.html",
        "scaling.csv",
        "scaling.tex",
        "scaling.json",
        "speed-up.svg",
        "speed-up.png",
    }
    assert "index.html" in done.stderr


def test_text_alone_writes_nothing(folder):
    assert "4 times as fast" in report(folder, "--text").stdout
    assert json.loads(report(folder, "--json").stdout)["schema"] == "toolkit.scaling/1"
    assert not (folder / "report").exists()


def test_several_studies_are_one_page(folder, tmp_path):
    done = report(folder, BSC, "-o", tmp_path / "out")
    assert "bsc-course" in done.stdout
    assert "bsc-course" in (tmp_path / "out" / "index.html").read_text()


def test_a_job_beside_a_study_is_refused(folder):
    with pytest.raises(BadInput, match="not a study"):
        report(folder, "mnist-2026")
    with pytest.raises(BadInput, match="--text"):
        report("--text")


def test_without_matplotlib_tables_are_there_and_the_rest_is_told(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Missing, match="matplotlib"):
        report(folder)
    assert (folder / "report" / "scaling.csv").is_file()
    assert not (folder / "report" / "index.html").exists()


def test_a_timeline_is_told_as_text_and_as_json():
    text = report("--timeline", TIMELINE).stdout
    assert "steps of" in text
    assert "reduce" in text
    assert "Settings to try: --env HOROVOD_FUSION_THRESHOLD=2097152 --env HOROVOD_CYCLE_TIME=" in text
    assert f"toolkit scale TRAINER --ranks N --prove {TIMELINE}" in text
    told = json.loads(report("--timeline", TIMELINE, "--json").stdout)
    assert told["advice"]["groups"] == 1
    assert told["shares"]["steps"] > 30
    with pytest.raises(BadInput, match="give only the timeline"):
        report("mnist-2026", "--timeline", TIMELINE)
