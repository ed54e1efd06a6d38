"""Test which text in the output of a probe belongs to an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.model.facts import HostFacts
from toolkit.probe.evidence import parse
from toolkit.probe.facts import host_facts

ANSWER = "toolkit-probe/1\n@ kernel\n|6.1.0\n@rc 0\n@ gpu\n@rc 127\n@end\n"


def test_sections_keep_their_lines_and_status():
    sections = parse(ANSWER, "here")
    assert sections["kernel"].lines == ("6.1.0",)
    assert sections["kernel"].ok
    assert sections["gpu"].missing


def test_a_login_banner_is_dropped():
    assert "kernel" in parse(f"Welcome to the cluster!\n@ not a section\n{ANSWER}", "here")


def test_an_answer_that_was_cut_is_no_empty_machine():
    with pytest.raises(CheckFailed, match="login: the output of the probe is incomplete: it ended"):
        parse(ANSWER.removesuffix("@end\n"), "login")


def test_no_answer_at_all_shows_what_came_instead():
    with pytest.raises(CheckFailed, match="did not answer") as error:
        parse("This account is not available.\n", "login")
    assert error.value.detail == ("This account is not available.",)


# Sources: argonne-lcf/user-guides:docs/polaris/known-issues.md, Conda's libtinfo under bash, and
# xonsh/xonsh:docs about modules and scl. Every program prints the message, even uname.
PRELOADED = (
    "ERROR: ld.so: object '/soft/xalt/3.0.2-202408282050/lib64/libxalt_init.so' from LD_PRELOAD "
    "cannot be preloaded (cannot open shared object file): ignored."
)
NOISE = [
    PRELOADED,
    "/bin/bash: /opt/conda/lib/libtinfo.so.6: no version information available (required by /bin/bash)",
    "bash: module: line 1: syntax error: unexpected end of file",
    "sh: scl: line 1: syntax error: unexpected end of file",
    "bash: error importing function definition for `BASH_FUNC_module'",
    "bash: module: line 0: unexpected EOF while looking for matching ``'",
]


@every_row("noise", NOISE)
def test_what_an_environment_makes_every_program_say_is_no_answer(noise):
    text = f"toolkit-probe/1\n@ kernel\n|{noise}\n|5.14.21\n@rc 0\n@ gpu\n|{noise}\n@rc 127\n@end\n"
    sections = parse(text, "here")
    assert sections["kernel"].lines == ("5.14.21",)
    assert sections["gpu"].missing


def test_a_raw_line_cannot_pass_for_the_end():
    sections = parse("toolkit-probe/1\n@ kernel\n|@end\n|@rc 1\n@rc 0\n@end\n", "here")
    assert sections["kernel"].lines == ("@end", "@rc 1")


def test_a_question_that_took_too_long_says_so():
    sections = parse("toolkit-probe/1\n@ kernel\n@rc 124\n@end\n", "here")
    assert sections["kernel"].trouble == "no answer in time"


def facts(body: str) -> HostFacts:
    return host_facts("here", parse(f"toolkit-probe/1\n{body}@end\n", "here"))


BROKEN = "|srun: error while loading shared libraries: libslurmfull.so: cannot open shared object file"
SLURM = "@ slurm\n|slurm 24.05.1\n@rc 0\n"


def test_a_program_whose_libraries_are_missing_is_there():
    host = facts(f"{SLURM}@ mpi-list\n{BROKEN}\n@rc 127\n")
    assert "slurm.mpi_types" not in host.absent
    assert "shared libraries" in host.unknown["slurm.mpi_types"]
    assert "slurm" in facts(f"@ slurm\n{BROKEN}\n|sh: 1: srun: not found\n@rc 127\n").unknown


@every_row("said", ["sh: 1: srun: not found", "sh: line 1: srun: command not found"])
def test_no_srun_beside_a_sinfo_that_works_says_nothing_of_what_slurm_offers(said):
    host = facts(f"{SLURM}@ mpi-list\n|{said}\n@rc 127\n")
    assert "slurm.mpi_types" not in host.absent
    assert "not found" in host.unknown["slurm.mpi_types"]


def test_variables_that_came_by_name_alone_are_kept():
    host = facts("@ environment\n|APPTAINER_CLEANENV\n|OMPI_MCA_btl=tcp\n@rc 0\n")
    assert host.environment == {"APPTAINER_CLEANENV": "", "OMPI_MCA_btl": "tcp"}


def test_an_environment_that_was_not_told_is_unknown():
    assert "not found" in facts("@ environment\n|sh: awk: not found\n@rc 127\n").unknown["environment"]
    assert "environment" in facts("").unknown


def test_questions_that_were_finished_before_we_ended_the_probe_are_kept():
    text = "toolkit-probe/1\n@ kernel\n|6.1.0\n@rc 0\n@ slurm\n|slurm 2"
    host = host_facts("here", parse(text, "here", cut=True))
    assert host.kernel == "6.1.0"
    assert host.unknown["slurm"] == "sinfo, srun: no answer in time"


@every_row(
    "body",
    [
        f"@ kernel\n@rc {'9' * 5000}\n",
        "@ slurm\n|slurm 24.05\n@rc 0\n@ partitions\n|debug*|\u00b2|up|1|1|(null)\n@rc 0\n",
        f"@ slurm\n|slurm 24.05\n@rc 0\n@ partitions\n|debug*|{'9' * 5000}|up\n@rc 0\n",
        "@ kernel\n|6.1\u2028@end\n@rc 0\n",
    ],
)
def test_hostile_answers_are_read_without_trouble(body):
    host = facts(body)
    assert host.slurm is None or host.slurm.nodes is None


@given(st.lists(st.tuples(st.sampled_from(["slurm", "mpi-list", "runtime", "pmix", "launchers"]), st.text())))
def test_facts_are_read_from_any_answer(questions):
    body = "".join(
        f"@ {name}\n" + "".join(f"|{line}\n" for line in text.splitlines()) + "@rc 0\n"
        for name, text in questions
    )
    host_facts("here", parse(f"toolkit-probe/1\n{body}@end\n", "here"))
