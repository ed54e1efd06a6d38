from tests.unit.launch.examples import RECORD
from tests.unit.report.trainings import BENCHMARK, COMPLETE, END, EPOCHS, HEADER, PARTIAL, lines
from toolkit.report.study.training import epochs_table, summary
from toolkit.study.result import parse_metrics, summarise


def test_each_epoch_is_a_line_of_numbers():
    assert epochs_table(parse_metrics(COMPLETE)).splitlines() == [
        "epoch    loss  accuracy  test loss  test accuracy  seconds  images/s",
        "-----  ------  --------  ---------  -------------  -------  --------",
        "    1  0.1000    0.9600     0.0900         0.9700     4.00     30000",
        "    2  0.0500    0.9700     0.0450         0.9800     2.00     60000",
    ]


def test_the_summary_says_what_ran_and_what_came_of_it():
    assert summary(summarise(parse_metrics(COMPLETE), RECORD)).splitlines() == [
        "trained        mnist, horovod, 2 ranks on 2 nodes, srun-pmix",
        "test accuracy  0.9800",
        "speed          40,000 images/s over 6.0 s",
        "batch          32 per rank, 64 on all ranks",
        "image          sha256:00",
        f"job            {RECORD.key} ({RECORD.id})",
    ]


def test_a_speed_below_one_is_no_speed_of_0():
    slow = lines(HEADER, *({**one, "images": 2, "images_per_second": 0.4231} for one in EPOCHS), END)
    training = parse_metrics(slow)
    assert epochs_table(training).endswith(" 0.423")
    assert "speed          0.7 images/s over 6.0 s" in summary(summarise(training, None))


def test_a_partial_training_says_so_first():
    told = summary(summarise(parse_metrics(PARTIAL), None))
    assert told.startswith("partial        1 of 2 epochs are finished\n")
    assert "image  " not in told


def test_a_benchmark_has_no_test_and_says_nothing_of_one():
    training = parse_metrics(BENCHMARK)
    assert epochs_table(training).splitlines()[2].split() == [
        *("1", "0.1000", "0.9600", "-", "-", "4.00", "30000"),
    ]
    assert "test accuracy" not in summary(summarise(training, None))


def test_a_loss_that_is_no_number_is_not_known():
    unknown = {**EPOCHS[1], "loss": None, "test_loss": None}
    training = parse_metrics(lines(HEADER, EPOCHS[0], unknown, {**END, "test_loss": None}))
    assert epochs_table(training).splitlines()[-1].split() == [
        "2", "-", "0.9700", "-", "0.9800", "2.00", "60000",
    ]  # fmt: skip
    assert (result := summarise(training, None)).test_loss is None
    assert "test accuracy  0.9800" in summary(result)
