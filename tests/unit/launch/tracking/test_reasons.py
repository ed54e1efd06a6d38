from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.launch.tracking.reasons import describe_reason, waits_for_turn


@every_row(
    ("reason", "said"),
    [
        ("Priority", "higher priority"),
        ("Resources", "waits for free nodes"),
        ("Dependency", "another job"),
        ("BeginTime", "start time of the job is in the future"),
        ("QOSMaxJobsPerUserLimit", "limit of the job's QOS"),
        ("MaxCpuPerAccount", "limit of the job's QOS"),
        ("QOSGrpCpuLimit", "all jobs of the QOS"),
        ("AssocGrpCPUMinutesLimit", "used up"),
        ("AssocGrpCPURunMinutesLimit", "have reserved"),
        ("AssocGrpNodeLimit", "all jobs of the account"),
        ("AssocMaxJobsLimit", "your jobs that use the same account"),
        ("ReqNodeNotAvail,_UnavailableNodes:node[3-4]", "maintenance: node[3-4]"),
        ("ReqNodeNotAvail,_May_be_reserved_for_other_job", "in use, or reserved for an earlier job"),
        ("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved", "down, reserved"),
        ("SomethingNew", "Slurm's reason is SomethingNew"),
    ],
)
def test_reasons_are_said_in_words(reason, said):
    assert said in describe_reason(reason).why


@every_row(
    ("reason", "turn"),
    [("Resources", True), ("ReqNodeNotAvail,_May_be_reserved_for_other_job", True), ("JobHeldUser", False)],
)
def test_who_waits_for_nothing_but_a_turn_is_told_apart(reason, turn):
    assert waits_for_turn(reason) is turn


@every_row(
    ("reason", "todo"),
    [
        ("PartitionTimeLimit", "--time"),
        ("JobHeldUser", "scontrol release"),
        ("QOSMaxWallDurationPerJobLimit", "--time"),
        ("QOSMaxNodePerJobLimit", "--nodes"),
        ("AssocMaxWallDurationPerJobLimit", "--qos"),
        ("DependencyNeverSatisfied", "cancel"),
        ("AccountNotAllowed", "--account"),
    ],
)
def test_what_will_never_start_by_itself_says_what_to_do(reason, todo):
    waiting = describe_reason(reason)
    assert waiting.never
    assert todo in waiting.todo


@every_row("reason", ["Priority", "Resources", "QOSMaxJobsPerUserLimit", "BeginTime"])
def test_what_only_takes_time_is_not_called_hopeless(reason):
    assert not describe_reason(reason).never


@given(st.text(max_size=80))
def test_any_text_is_taken(reason):
    assert describe_reason(reason).why
