"""Test the check of each value of a job: toolkit accepts valid values, and an error shows a valid form."""

import pytest

from tests.unit.launch.examples import spec
from tests.unit.tables import every_row
from toolkit import nodelist
from toolkit.errors import BadInput
from toolkit.launch.request.checks import FORMS, check_names, check_spec, objections, option
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import FIELDS, JobFields, JobFile

GOOD = [
    ("partition", "batch,devel"),
    ("time", "90"),
    ("time", "1-12"),
    ("time", "UNLIMITED"),
    ("memory", "0"),
    ("memory", "180000"),
    ("memory_per_cpu", "3900M"),
    ("constraint", "knl,quad,cache"),
    ("constraint", "[a*2&b*1]"),
    ("nodelist", "jwb[0001-0004,0010],login1"),
    ("exclude", "node3"),
    ("licenses", "SCRATCH,cfs:2"),
    ("switches", "2"),
    ("tmp", "200G"),
    ("tmp", "500000"),
    ("switches", "1@1-12:30"),
    ("mail_type", "END,FAIL"),
    ("mail_user", "a.b+c@x.org"),
    ("array", "0-15:4%2"),
    ("array", "1,3,5-7"),
    ("array", "4000000"),
    ("array", "7-7%1"),
    ("time", "24855-0"),
    ("nodelist", "n[1-65536]"),
    ("memory", "999999999999"),
    ("nodes", 65536),
    ("ranks_per_node", 65533),
    ("dependency", "afterok:1:2_3,afterany:4+5"),
    ("dependency", "singleton"),
    ("dependency", "aftercorr:7_*"),
    ("begin", "now+3600"),
    ("begin", "2026-12-24T18:00:00"),
    ("begin", "16:00"),
    ("gpu", "a100-sxm4-40gb"),
    ("gpu_bind", "map_gpu:0,1,2,3"),
    ("cpu_bind", "verbose,mask_cpu:0xff,0xff00"),
    ("output", "%x-%j.out"),
    ("output", "/abs/%A_%04a.log"),
    ("workdir", "/a b/ü"),
]
BAD = [
    ("partition", "a b"),
    ("partition", "a,"),
    ("account", "-x"),
    ("qos", "a;b"),
    ("reservation", "x\ny"),
    ("time", "1h"),
    ("memory", "16 G"),
    ("memory", "16GB"),
    ("memory", "lots"),
    ("constraint", "a b"),
    ("constraint", "'x'"),
    ("nodelist", "node[1-"),
    ("licenses", "a b"),
    ("switches", "0"),
    ("tmp", "1.5T"),
    ("tmp", "200GB"),
    ("tmp", "9999999999999"),
    ("switches", "1@soon"),
    ("switches", "1 --wrap=x"),
    ("mail_type", "SOMETIMES"),
    ("mail_user", "a b"),
    ("array", "a-b"),
    ("array", "1-"),
    ("dependency", "after 5"),
    ("dependency", "afterok"),
    ("begin", "soon"),
    ("begin", "2026-12-24 18:00"),
    ("gpu", "a:b"),
    ("gpu_bind", "all"),
    ("cpu_bind", "core"),
    ("output", "a b"),
    ("output", "logs/x.out"),
    ("error", "../x"),
    ("output", "/"),
    ("output", "-x"),
    ("output", "%q"),
    ("output", "100%"),
    ("workdir", "rel"),
    ("nodes", 0),
    ("ranks_per_node", 0),
    ("gpus_per_node", -1),
    ("warning", 65536),
    ("nodes", 65537),
    ("nodes", 99999999999999999999),
    ("ranks_per_node", 65534),
    ("cpus_per_rank", 10**12),
    ("gpus_per_node", 10**12),
    ("chain", 10**12),
    ("fabric_gbit", 10**12),
    ("nodelist", "node[1-]"),
    ("nodelist", "node[,]"),
    ("chain", -1),
]


@every_row(("field", "value"), GOOD)
def test_what_slurm_takes_passes(field, value):
    assert list(objections({field: value})) == []


@every_row(("field", "value"), BAD)
def test_what_it_would_misread_is_refused_by_its_option(field, value):
    with pytest.raises(BadInput, match=option(field)):
        check_spec(spec(**{field: value}))


@every_row(
    ("field", "value", "why"),
    [
        ("array", "7-0", "the range 7-0 is reversed"),
        ("array", "1,9-3:2", "the range 9-3:2 is reversed"),
        ("array", "0-7:0", "the step of 0-7:0 must be at least 1"),
        ("array", "4000001", "task index 4000001 is too large; Slurm accepts at most 4000000"),
        ("array", "0-7%4000001", "at most 4000000 tasks at once"),
        ("array", "1-99999999999999999999", "at most 12 digits"),
        ("time", "99999999999-00:00:00", "at most 24855 days, or UNLIMITED"),
        ("time", "24855-00:01", "at most 24855 days"),
        ("time", "9" * 5000, "at most 12 digits"),
        ("nodelist", "node[5-3]", "5-3"),
        ("exclude", "node[1-65537]", "has more than 65536 nodes"),
        ("memory", "9999999999999G", "at most 12 digits"),
        ("memory_per_cpu", "9999999999999", "at most 12 digits"),
        ("dependency", "afterok:9999999999999", "at most 12 digits"),
        ("begin", "now+9999999999999days", "at most 12 digits"),
        ("nodes", 65537, "at most 65536"),
    ],
)
def test_what_has_the_form_and_is_too_much_is_refused_in_one_line(field, value, why):
    with pytest.raises(BadInput, match=option(field)) as caught:
        check_spec(spec(**{field: value}))
    assert why in caught.value.message


@every_row(
    ("item", "why"),
    [
        ("--nodes=3", "use the job field nodes instead"),
        ("-N 3", "use the job field nodes instead"),
        ("--wrap=id", "use the job field command instead"),
        ("--signal=USR2", "use the job field warning instead"),
        ("--outp=/tmp/x", "use the job field output instead"),
        ("--chdi=/tmp", "use the job field directory instead"),
        ("--ntasks-per-n=4", "use the job field ranks_per_node instead"),
        ("-o/tmp/x", "write one option"),
        ("--comment=x --output=/dev/null", "more than one option"),
        ("--hold --output=/dev/null", "more than one option"),
        ("-p gpu -o x", "more than one option"),
        ("--comment='a hetjob'", "more than one option"),
        ("hold", "write one option"),
        ("--comment='a", "a closing quotation mark is missing"),
        ("--comment=a\n#SBATCH --x", "write one option"),
        ("--comment=\x1b[2J", "write one option"),
    ],
)
def test_a_line_for_sbatch_is_one_option_that_has_no_field(item, why):
    with pytest.raises(BadInput, match=why):
        check_spec(spec(sbatch=(item,)))


@every_row("item", ["--hold", "--comment='a b'", "-k", "--switches=1@10:00", "-w node1"])
def test_other_options_of_sbatch_pass(item):
    check_spec(spec(sbatch=(item,)))


@every_row("item", ["a;b", "", "a b c", "-x", "$(id)", "load x y z", "a\n"])
def test_what_is_no_module_is_refused(item):
    with pytest.raises(BadInput, match="--module"):
        check_spec(spec(modules=(item,)))


@every_row("item", ["/a,b", "/a:b:c:d", "/a\n", "", "/a::ro"])
def test_a_bind_that_singularity_would_split_is_refused(item):
    with pytest.raises(BadInput, match="--bind"):
        check_spec(spec(binds=(item,)))


def test_every_form_belongs_to_a_field():
    assert set(FORMS) <= set(JobFile.__struct_fields__)


def test_the_table_the_job_file_and_the_arguments_have_the_same_fields():
    named = {field.name for field in FIELDS}
    assert named | {"trainer", "arguments", "command"} == set(JobFile.__struct_fields__)
    assert named == set(JobFields.__annotations__)
    assert {field.name for field in FIELDS if field.sbatch} <= set(JobSpec.__struct_fields__)


def test_a_job_may_have_as_many_nodes_as_a_list_can_name():
    assert next(field for field in FIELDS if field.name == "nodes").bounds == (1, nodelist.MOST_NODES)


def test_what_is_not_given_is_not_judged():
    check_names(partition=None, account="x")
    assert list(objections({"memory": "", "gpu": None})) == []
