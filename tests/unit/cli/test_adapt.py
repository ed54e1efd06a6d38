"""Test the output, the files and the errors of ``toolkit adapt``."""

import json

import pytest

from docs.generate.schemas import documents, schema
from tests.unit.program.adapt.golden import FOLDER
from tests.unit.schemas import library
from tests.unit.tables import every_row
from toolkit.cli.main import main

SCRIPT = FOLDER / "keras_two_models.py"


@pytest.fixture
def adapt(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_bytes(SCRIPT.read_bytes())

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["adapt", *words])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


def test_the_diff_goes_to_standard_output_and_the_rest_to_standard_error(adapt):
    code, out, err = adapt("train.py")
    assert code == 0
    assert out.startswith("--- train.py\n+++ train_dist.py\n@@ ")
    assert "+hvd.init()\n" in out
    assert "for Horovod." in err
    assert '  line 27: `student.save_weights(f"student-{round}.weights.h5")`' in err
    assert "toolkit adapt train.py -o train_dist.py" in err
    assert max(map(len, err.splitlines())) <= 100


def test_a_file_is_written_once(adapt, tmp_path):
    code, out, err = adapt("train.py", "-o", "train_dist.py")
    assert (code, out) == (0, "Written to train_dist.py.\n")
    assert "toolkit launch --nodes 2 train_dist.py" in err
    made = (tmp_path / "train_dist.py").read_text()
    assert "hvd.init()" in made
    (tmp_path / "train_dist.py").write_text("mine")
    code, _, err = adapt("train.py", "-o", "train_dist.py")
    assert code == 2
    assert "the file exists" in err
    assert (tmp_path / "train_dist.py").read_text() == "mine"
    assert adapt("train.py", "-o", "train_dist.py", "--force")[0] == 0
    assert (tmp_path / "train_dist.py").read_text() == made
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py", "train_dist.py"]


def test_json_fits_its_schema(adapt):
    code, out, err = adapt("train.py", "--json")
    assert (code, err) == (0, "")
    value = json.loads(out)
    library().validate(value, schema(documents()["toolkit.adapt/1"], "toolkit.adapt/1"))
    assert (value["program"], value["joins"], value["output"]) == ("horovod", [], None)
    assert {"line": 27, "what": value["left"][0]["what"]} == value["left"][0]


def test_a_script_that_joins_is_left_alone(adapt, tmp_path):
    (tmp_path / "joined.py").write_text("import horovod.tensorflow as hvd\nhvd.init()\n")
    code, out, _ = adapt("joined.py", "-o", "new.py")
    assert (code, out) == (0, "joined.py already connects its ranks (Horovod); toolkit changes nothing\n")
    assert not (tmp_path / "new.py").exists()


@every_row("text", ["print(1)\n", "import torch\n", "def f(:\n", "\0"])
def test_other_files_end_in_2(adapt, tmp_path, text):
    (tmp_path / "other.py").write_text(text)
    code, out, err = adapt("other.py")
    assert (code, out) == (2, "")
    assert "other.py" in err.splitlines()[0]
