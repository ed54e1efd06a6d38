"""Test how strictly toolkit reads options, variables, job files and settings, and which has priority."""

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.launch.request.complete import complete_job
from toolkit.launch.request.jobyaml import read
from toolkit.launch.request.layers import (
    DEFAULTS,
    OPTION,
    JobLayer,
    MergedJob,
    check_layer,
    from_variables,
    merge,
    of_site,
)
from toolkit.model.jobfile import JobFile
from toolkit.model.site import Defaults, Partition, Site


def from_file(text):
    found = read(text, "job.yaml")
    return check_layer(found.values, "job.yaml", found.lines, strict=False)


SITE = Site(
    schema="toolkit.site/1",
    title="A cluster",
    directory="$WORK/toolkit",
    defaults=Defaults(partition="gpus", account="train", time="02:00:00", sbatch=("--hold",)),
    partitions=(
        Partition(name="gpus", cores=40, gpus=4, max_time="24:00:00"),
        Partition(name="batch", cores=48),
    ),
)


def test_a_file_says_texts_as_they_stand_there():
    said = from_file("time: 10:00\naccount: no\nnodes: 2\nname: 1e3\nexclusive: TRUE\nenv: {A: 010}\n").fields
    assert (said.time, said.account, said.nodes, said.name) == ("10:00", "no", 2, "1e3")
    assert (said.exclusive, said.env) == (True, {"A": "010"})


@every_row(
    ("text", "told"),
    [
        (
            "nodes: 2\nnode: 3\n",
            "job.yaml:2: node: unknown field (did you mean nodes?); choices: trainer,",
        ),
        ("\n\nnodes: two\n", "job.yaml:3: nodes: write a whole number"),
        ("exclusive: yes\n", "job.yaml:1: exclusive: write true or false"),
        ("nodes: 1\nbinds: /data\n", "job.yaml:2: binds: write a list"),
        (
            "mode: srun\n",
            "job.yaml:1: mode: 'srun' is not an allowed value; choices: srun-pmix,",
        ),
        ("a: 1\na: 2\n", "job.yaml:2: a: appears twice"),
        ("nodes: 1\nname: 'a b'\n", "job.yaml:2: name: 'a b': a name has at most 128 letters"),
        (
            "sbatch:\n- --hold\n- --nodes=2\n",
            "job.yaml:1: sbatch: '--nodes=2': use the job field nodes instead",
        ),
        ("env:\n  A: 1\n  A B: 2\n", "job.yaml:3: env.A B: 'A B': not a valid variable name"),
        (
            "trainer: mnist\nnodes: 2\ncommand: [true]\n",
            "job.yaml:3: command: cannot be combined with a trainer; leave out one",
        ),
        ("command: []\ntrainer: mnist\n", "job.yaml:1: command: cannot be combined with a trainer"),
        (
            "command: [python, x.py]\narguments: [--fast]\n",
            "job.yaml:2: arguments: only a trainer has arguments; add your arguments to the command",
        ),
        ("- a\n", "job.yaml:1: expected fields with values"),
        ("just text\n", "job.yaml:1: expected fields with values"),
        ("a: [1\nb: 2\n", "job.yaml:2: this is not YAML"),
        ("a: &x 1\n", "job.yaml:1: YAML anchors"),
        ("a: 1\n---\nb: 2\n", "job.yaml:2: a second YAML document begins here"),
        ("nodes: \x07\n", "job.yaml: this is not YAML"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(text, told):
    with pytest.raises(BadInput) as caught:
        from_file(text)
    assert caught.value.message.startswith(told)
    assert "\n" not in caught.value.message


@every_row("text", ["", "# nothing\n", "nodes:\n", "nodes: ~\nname: null\n"])
def test_a_file_may_say_nothing(text):
    assert from_file(text).fields == JobFile()


def test_a_text_in_quotes_is_a_text():
    assert from_file("name: 'null'\n").fields.name == "null"


def test_the_later_word_counts_and_its_place_is_known():
    layers = [
        JobLayer("default", DEFAULTS),
        of_site("mine", SITE),
        check_layer(
            {"account": "own", "env": {"A": "1", "B": "1"}}, "/home/config.toml", {"account": 3}, strict=True
        ),
        from_variables(
            {"TOOLKIT_QOS": "high", "TOOLKIT_NODES": "3", "TOOLKIT_CACHE_DIR": "/x", "TOOLKIT_GPU": ""}
        ),
        from_file("nodes: 4\nenv: {B: 2}\n"),
        check_layer({"nodes": 5}, OPTION, {}, strict=True),
    ]
    merged = merge(layers)
    assert (merged.job.nodes, merged.job.account, merged.job.partition) == (5, "own", "gpus")
    assert (merged.job.qos, merged.job.time, merged.job.env) == ("high", "02:00:00", {"A": "1", "B": "2"})
    assert merged.origins["nodes"] == "--nodes"
    assert merged.origins["account"] == "/home/config.toml:3"
    assert merged.origins["partition"] == "site mine"
    assert merged.origins["qos"] == "TOOLKIT_QOS"
    assert merged.origins["env"] == "job.yaml:2"
    assert merged.origins["ranks_per_node"] == "default"


def test_a_command_takes_the_place_of_a_trainer_and_the_other_way_round():
    trainer = JobLayer("a", JobFile(trainer="mnist", arguments=("--epochs", "1")))
    command = JobLayer("b", JobFile(command=("true",)))
    assert merge([trainer, command]).job == JobFile(command=("true",))
    assert merge([command, trainer]).job == JobFile(trainer="mnist", arguments=("--epochs", "1"))


def test_a_wrong_variable_is_named():
    with pytest.raises(BadInput, match=r"^TOOLKIT_NODES: write a whole number"):
        from_variables({"TOOLKIT_NODES": "many"})
    with pytest.raises(BadInput, match=r"^TOOLKIT_ACCOUNT: 'a b'"):
        from_variables({"TOOLKIT_ACCOUNT": "a b"})


def filled(site=SITE, **said):
    job = JobFile(**{"partition": "gpus", "nodes": 1, "ranks_per_node": 1, "time": "01:00:00", **said})
    return complete_job(MergedJob(job, dict.fromkeys(job.given_values(), "x")), site)


def test_a_rank_has_its_share_of_the_cores():
    assert filled(ranks_per_node=4).job.cpus_per_rank == 10
    assert filled(gpus_per_node=1).job.cpus_per_rank == 10
    assert filled(gpus_per_node=2, ranks_per_node=2).job.cpus_per_rank == 10
    assert filled(partition="batch").job.cpus_per_rank == 48
    assert filled(ranks_per_node=21).job.cpus_per_rank == 1
    assert filled(cpus_per_rank=3).job.cpus_per_rank == 3
    assert filled(site=None).job.cpus_per_rank is None
    assert filled().origins["cpus_per_rank"] == "40 cores of a node in gpus"


def test_a_job_says_where_its_partition_and_what_follows_it_are_from():
    default = Defaults(partition="batch", cpus_per_rank=48, memory="90G", constraint="skylake")
    gpus = Partition(name="gpus", cores=40, gpus=4, memory_mb=60000, features=("volta",))
    site = Site(
        schema="toolkit.site/1",
        title="x",
        defaults=default,
        partitions=(Partition(name="batch", cores=48, gpus=0), gpus),
    )
    asked = JobFile(site="mine", nodes=1, ranks_per_node=1, time="30", gpus_per_node=2)
    found = complete_job(merge([of_site("mine", site), JobLayer(OPTION, asked)]), site)
    why = "the default partition batch has no GPUs"
    assert found.note == f"partition gpus: {why}"
    assert (found.job.partition, found.origins["partition"]) == ("gpus", why)
    assert (found.job.cpus_per_rank, found.origins["cpus_per_rank"]) == (20, "40 cores of a node in gpus")
    assert (found.job.memory, found.origins["memory"]) == ("60000M", "memory of a node in gpus")
    assert found.job.constraint is None
    assert set(found.job.given_values()) <= set(found.origins)


def test_a_partition_of_settings_is_one_that_a_person_names():
    site = Site(
        schema="toolkit.site/1",
        title="x",
        defaults=Defaults(partition="batch"),
        partitions=(Partition(name="batch", gpus=0), Partition(name="gpus", gpus=4)),
    )
    settings = JobLayer("toolkit.toml", JobFile(partition="batch"), {"partition": 2})
    asked = JobLayer(OPTION, JobFile(site="mine", gpus_per_node=2))
    merged = merge([JobLayer("default", DEFAULTS), of_site("mine", site), settings, asked])
    with pytest.raises(BadInput, match="--gpus-per-node 2: partition batch has no GPUs") as caught:
        complete_job(merged, site)
    assert caught.value.detail == ("partition = batch <- toolkit.toml:2",)


def test_a_trainer_is_warned_in_time():
    assert filled(trainer="mnist").job.warning == 120
    assert filled(trainer="mnist", warning=0).job.warning == 0
    assert filled(trainer="mnist", time="9").job.warning is None
    assert filled(trainer="mnist", time="UNLIMITED", partition="batch").job.warning is None
    assert filled(trainer="mnist", time="0", partition="batch").job.warning is None
    assert filled(command=("true",)).job.warning is None
