import pytest

from tests.unit.study.studies import BSC, kept, point, study
from toolkit.errors import BadInput, CheckFailed
from toolkit.study import folder


def test_what_is_kept_comes_back_and_the_rest_is_planned(tmp_path):
    made = study([(1, 1), (2, 1)])
    kept(tmp_path, made, [point(1, 4.0)])
    assert folder.load(tmp_path) == made
    first, second = folder.load_points(tmp_path, made)
    assert first == point(1, 4.0)
    assert (second.state, second.ranks) == ("planned", 2)


def test_what_is_no_study_is_told_with_its_place(tmp_path):
    assert not folder.is_study(tmp_path)
    with pytest.raises(BadInput, match="No such file"):
        folder.load(tmp_path)
    for text, said in (
        ("{", "not a study"),
        ('{"name": "x", "sizes": [], "schema": "toolkit.study/9"}', "unknown schema"),
    ):
        (tmp_path / "study.json").write_text(text)
        with pytest.raises(BadInput, match=said):
            folder.load(tmp_path)


def test_a_damaged_point_is_told_and_not_measured_again_in_silence(tmp_path):
    made = study([(1, 1)])
    kept(tmp_path, made, [point(1, 4.0)])
    (tmp_path / "points" / "r1-n1-1.json").write_text("{")
    with pytest.raises(BadInput, match=r"r1-n1-1\.json: not a measurement"):
        folder.load_points(tmp_path, made)


def test_two_runs_of_one_study_do_not_meet(tmp_path):
    with (
        folder.hold_study(tmp_path),
        pytest.raises(CheckFailed, match="another `toolkit scale"),
        folder.hold_study(tmp_path),
    ):
        pass
    with folder.hold_study(tmp_path):
        pass


def test_a_published_series_is_a_study_like_any_other():
    made = folder.load(BSC)
    assert [p.figures.seconds for p in folder.load_points(BSC, made)] == [(45.0,), (24.0,), (12.0,)]
