import importlib

import msgspec
import pytest

from tests.unit.study.studies import study
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.knowledge.trainers import trainers
from toolkit.model.study import STUDY_FIELDS, Point, Size
from toolkit.study import folder, study_points


def test_every_number_of_ranks_runs_on_every_number_of_nodes_that_it_fills_evenly():
    found = study_points.sizes([4, 1, 2], [1, 2], None)
    assert found == (Size(1, 1), Size(2, 1), Size(2, 2), Size(4, 1), Size(4, 2))


def test_no_node_has_more_ranks_than_it_may():
    assert study_points.sizes([1, 2, 4], [1, 2], 2) == (Size(1, 1), Size(2, 1), Size(2, 2), Size(4, 2))


def test_without_nodes_the_ranks_fill_as_few_as_may_be():
    assert study_points.sizes([1, 2, 4, 8], (), 4) == (Size(1, 1), Size(2, 1), Size(4, 1), Size(8, 2))
    assert study_points.sizes([1, 3], (), None) == (Size(1, 1), Size(3, 3))


@every_row(
    ("ranks", "nodes", "each", "said"),
    [
        ([3], [2], None, "cannot be divided evenly"),
        ([6], [], 4, "not a multiple of --ranks-per-node"),
        ([2, 4], [1], 2, "4: cannot be divided evenly among --nodes 1 with at most 2 ranks on a node"),
    ],
)
def test_ranks_that_fit_no_nodes_are_refused(ranks, nodes, each, said):
    with pytest.raises(BadInput, match=said):
        study_points.sizes(ranks, nodes, each)


def test_a_round_runs_every_size_and_timelines_come_last():
    found = study_points.points(study([(1, 1), (2, 1)], repeats=2, profile=True))
    assert [(p.ranks, p.number, p.profile) for p in found] == [
        (1, 1, False), (2, 1, False), (1, 2, False), (2, 2, False), (2, 1, True),
    ]  # fmt: skip
    assert len({study_points.file_name(p) for p in found}) == 5


def test_a_trainer_is_given_so_many_epochs_that_each_rank_trains_as_many():
    said, words = study_points.job_fields(study([(4, 2)], epochs=3, batch=8), Point(ranks=4, nodes=2))
    assert (said["nodes"], said["ranks_per_node"]) == (2, 2)
    assert words == ("--epochs", "12", "--batch-size", "8")


def test_a_trainer_that_only_measures_does_so_as_often_as_there_would_be_epochs():
    made = study([(4, 2)], epochs=3, batch=8, said={"trainer": "imagenet-synthetic"})
    assert study_points.job_fields(made, Point(ranks=4, nodes=2))[1] == (
        "--iterations",
        "3",
        "--batch-size",
        "8",
    )
    made = msgspec.structs.replace(made, words=("--iterations", "9"))
    assert study_points.job_fields(made, Point(ranks=4, nodes=2))[1] == (
        "--iterations",
        "9",
        "--batch-size",
        "8",
    )


def test_where_ranks_share_out_an_epoch_there_are_no_more_of_them_with_more_ranks():
    made = study([(4, 2)], epochs=3, said={"trainer": "cifar10"})
    assert study_points.job_fields(made, Point(ranks=4, nodes=2))[1] == ("--epochs", "3")


def test_several_trainers_are_series_each_with_its_own_epochs_and_data():
    values = ("mnist", "cifar10")
    made = study([(2, 1)], compare="trainer", values=values, epochs=3, said={"data": "few"})
    study_points.check(made)
    found = [study_points.job_fields(made, one) for one in study_points.points(made)]
    assert [said["trainer"] for said, _ in found] == ["mnist", "cifar10"]
    assert [said["data"] for said, _ in found] == ["few/mnist", "few/cifar10"]
    assert [words for _, words in found] == [("--epochs", "6"), ("--epochs", "3")]


def test_how_trainers_count_epochs_is_known():
    for known in trainers().trainer:
        one = importlib.import_module(f"toolkit.trainers.{known.name.replace('-', '_')}").TRAINER
        assert known.epochs == ("none" if "--epochs" in one.unused else one.passes), known.name


def test_a_series_may_be_a_name_for_several_variables():
    settings = {"default": {}, "suggested": {"HOROVOD_CYCLE_TIME": "5", "HOROVOD_FUSION_THRESHOLD": "1"}}
    made = study(
        [(2, 1)], values=tuple(settings), settings=settings, said={"trainer": "mnist", "env": {"A": "1"}}
    )
    found = [study_points.job_fields(made, one)[0]["env"] for one in study_points.points(made)]
    assert found == [{"A": "1"}, {"A": "1", **settings["suggested"]}]
    assert list(study_points.differences(made, msgspec.structs.replace(made, settings={}))) == ["settings"]


def test_strong_scaling_shares_out_one_batch():
    made = study([(1, 1), (4, 1)], scaling="strong", batch=64)
    assert [study_points.batch_of(made, ranks) for ranks in (1, 4)] == [64, 16]
    with pytest.raises(BadInput, match="divided evenly among 3 ranks"):
        study_points.batch_of(made, 3)


def test_words_of_a_command_may_name_the_size():
    made = study(
        [(2, 1)], said={}, words=("bench", "-n={ranks}", "--nodes", "{nodes}", "{other}"), pattern="(x)"
    )
    assert study_points.job_fields(made, Point(ranks=2, nodes=1))[1] == (
        "bench",
        "-n=2",
        "--nodes",
        "1",
        "{other}",
    )


def test_series_differ_in_an_option_or_a_variable():
    by_option = study([(2, 1)], compare="cpus_per_rank", values=("1", "2"))
    assert study_points.job_fields(by_option, Point(series="2", ranks=2, nodes=1))[0]["cpus_per_rank"] == 2
    by_mode = study([(2, 1)], compare="mode", values=("gloo",))
    assert study_points.job_fields(by_mode, Point(series="gloo", ranks=2, nodes=1))[0]["mode"] == "gloo"
    made = study(
        [(2, 1)], compare="HOROVOD_CYCLE_TIME", values=("5",), said={"trainer": "mnist", "env": {"A": "1"}}
    )
    said, _ = study_points.job_fields(made, Point(series="5", ranks=2, nodes=1, profile=True))
    assert said["env"]["A"] == "1"
    assert said["env"]["HOROVOD_CYCLE_TIME"] == "5"
    assert said["env"]["HOROVOD_TIMELINE"] == study_points.TIMELINE
    assert made.said["env"] == {"A": "1"}


def test_series_may_differ_in_what_is_on_or_off():
    made = study([(2, 1)], compare="exclusive", values=("true", "false"))
    found = [study_points.job_fields(made, one)[0]["exclusive"] for one in study_points.points(made)]
    assert found == [True, False]


def test_a_point_is_one_job_of_its_size_whatever_else_is_said():
    made = study([(4, 2)], said={"trainer": "mnist", "nodes": 7, "ranks_per_node": 7, "array": "0-3"})
    said, _ = study_points.job_fields(made, Point(ranks=4, nodes=2))
    assert (said["nodes"], said["ranks_per_node"]) == (2, 2)
    assert (said["array"], said["elastic"], said["min_nodes"]) == ("", False, 0)
    assert (said["requeue"], said["chain"]) == (False, 0)


@every_row(
    ("compare", "said", "fix"),
    [
        *((name, "toolkit scale sets this option itself", "") for name in STUDY_FIELDS if name != "nodes"),
        ("nodes", "--compare nodes: toolkit scale sets this option itself", "--nodes 1,2"),
        ("modules", "is a list, and toolkit scale", "--study"),
        ("env", "is a list, and toolkit scale", "--study"),
    ],
)
def test_no_series_is_made_of_what_a_study_sets_itself_or_of_lists(compare, said, fix):
    with pytest.raises(BadInput, match=said) as refused:
        study_points.check(study([(2, 1)], compare=compare, values=("1", "2")))
    assert fix in refused.value.fix


@every_row("values", [("+1", "-1"), ("a-b", "a_b"), ("images/x.sif", "images_x.sif")])
def test_series_whose_files_would_have_one_name_are_refused(values):
    with pytest.raises(BadInput, match="would have the same names"):
        study_points.check(study([(2, 1)], compare="A", values=values))


@every_row(
    ("more", "said"),
    [
        ({"pattern": "(x)"}, "leave out `--pattern`"),
        ({"said": {}}, "the program is missing"),
        ({"said": {}, "words": ("true",)}, "--pattern is missing"),
        ({"said": {}, "pattern": "(x)", "words": ("bench", "{batch}")}, "the command contains {batch}"),
        ({"words": ("--epochs", "4")}, "give `--epochs`"),
        ({"words": ("--batch-size=4",)}, "give `--epochs` and `--batch`"),
        ({"scaling": "strong"}, "--strong"),
        ({"epochs": 1}, "must be more than --warm-up 1"),
        ({"scaling": "strong", "batch": 3}, "divided evenly among 2 ranks"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_submitted(more, said):
    with pytest.raises(BadInput, match=said):
        study_points.check(study([(2, 1)], **more))


def test_a_study_may_grow_and_must_not_change():
    old = study([(1, 1)])
    assert study_points.differences(old, msgspec.structs.replace(old, sizes=(Size(8, 1),), repeats=9)) == {}
    other = msgspec.structs.replace(old, batch=4, said={**old.said, "image": "a.sif"})
    assert study_points.differences(old, other) == {"batch": (None, 4), "image": (None, "a.sif")}


def test_what_figures_do_not_depend_on_may_change():
    old = study([(1, 1)])
    said = {"time": "04:00:00", "account": "b", "qos": "long", "reservation": "r", "begin": "now",
            "mail_type": "END", "mail_user": "me"}  # fmt: skip
    assert study_points.differences(old, msgspec.structs.replace(old, said=old.said | said)) == {}
    other = msgspec.structs.replace(old, said=old.said | {"partition": "gpu"})
    assert list(study_points.differences(old, other)) == ["partition"]


def test_a_study_that_was_read_back_is_the_same_one(tmp_path):
    given = study([(1, 1)], said={"binds": ("/work", "/a:/b"), "env": {"A": "1"}})
    folder.save(tmp_path, given)
    assert study_points.differences(folder.load(tmp_path), given) == {}
