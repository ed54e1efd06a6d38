import json

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.launch.examples import RECORD
from tests.unit.study.studies import ORIGIN, kept, point, study
from toolkit.cli.report import command
from toolkit.errors import BadInput, CheckFailed
from toolkit.launch.tracking import records

FORM = "csc-roihu-gpularge"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def report(*words):
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


def measured(where, *, gpu=0.9):
    record = msgspec.structs.replace(
        RECORD, key=ORIGIN.job, started="2026-11-21T10:00:00", ended="2026-11-21T10:02:30"
    )
    records.save(record)
    (records.folder(record.key) / records.SCRIPT).write_text("#!/bin/bash\n#SBATCH --nodes=4\n# <script>\n")
    points = [point(n, 8.0 / n, nodes=n) for n in (1, 2, 4)]
    points = [
        msgspec.structs.replace(one, figures=msgspec.structs.replace(one.figures, gpu=gpu)) for one in points
    ]
    return kept(where, study([(n, n) for n in (1, 2, 4)]), points)


def test_a_complete_study_makes_a_page_with_its_job_script(tmp_path):
    where = measured(tmp_path / "study")
    done = report(where, "--for", FORM)
    assert done.exit_code == 0
    assert "✗" not in done.stdout
    assert "150 s" in done.stdout
    page = (where / "report" / f"{FORM}.html").read_text()
    assert "#SBATCH --nodes=4" in page
    assert "&lt;script&gt;" in page
    assert "90 %" in page


def test_what_is_missing_is_written_and_ends_with_status_1(tmp_path):
    where = measured(tmp_path / "study", gpu=None)
    (records.folder(ORIGIN.job) / records.SCRIPT).unlink()
    with pytest.raises(CheckFailed, match="does not meet a requirement of the form"):
        report(where, "--for", FORM, "-o", tmp_path / "out")
    page = (tmp_path / "out" / f"{FORM}.html").read_text()
    assert 'class="unmet"' in page
    assert "on the machine that ran <code>toolkit scale</code>" in page


def test_json_holds_rows_and_demands(tmp_path):
    told = json.loads(report(measured(tmp_path / "study"), "--for", FORM, "--json").stdout)
    assert told["schema"] == "toolkit.evidence/1"
    assert [row["nodes"] for row in told["series"][0]["rows"]] == [1, 2, 4]
    assert all(demand["met"] for demand in told["series"][0]["demands"])


def test_forms_are_listed():
    assert FORM in report("--for", "list").stdout


def test_a_job_is_not_a_study(tmp_path):
    with pytest.raises(BadInput, match="needs one study"):
        report(tmp_path, "--for", FORM)
