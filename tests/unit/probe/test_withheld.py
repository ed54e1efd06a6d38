"""What a facts file keeps of variables: values that a rule reads, and none that tells of a person."""

import msgspec
import pytest

from toolkit.knowledge.settings import reads_value, settings
from toolkit.probe.evidence import VERSION, parse
from toolkit.probe.facts import host_facts
from toolkit.probe.read.withheld import public

AGENT = "ssh -i /home/alice/.ssh/id -o user=alice@secret-host"
KEY = "TOKEN-9f8e7d6c5b4a3f2e1d0c"


def facts(*lines):
    said = "\n".join(f"|{line}" for line in lines)
    params = "\n".join(
        f"|{line}" for line in ("file ~/.openmpi/mca-params.conf", f"set plm_rsh_agent = {AGENT}")
    )
    text = (
        f"{VERSION}\n@ environment\n{said}\n@rc 0\n@ mca-params\n{params}\n|set btl = tcp,self\n@rc 0\n@end\n"
    )
    return host_facts("here", parse(text, "here"))


def test_a_facts_file_has_no_value_of_a_person_from_the_environment_or_a_parameter_file():
    host = facts(
        f"OMPI_MCA_plm_rsh_agent={AGENT}", f"PMIX_MCA_x={KEY}", f"PRTE_MCA_y={KEY}",
        "OMPI_MCA_btl=tcp,self",
        f"OMPI_MCA_pml={KEY}", "OMPI_MCA_btl_tcp_if_include=alice@host",
    )  # fmt: skip
    written = msgspec.json.encode(host).decode()
    for word in ("alice", "secret-host", "9f8e7d", ".ssh"):
        assert word not in written
    assert host.environment == {
        "OMPI_MCA_plm_rsh_agent": "", "PMIX_MCA_x": "", "PRTE_MCA_y": "", "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_pml": "", "OMPI_MCA_btl_tcp_if_include": "",
    }  # fmt: skip
    assert host.mca_params == {"plm_rsh_agent": "", "btl": "tcp,self"}


def test_every_value_that_a_row_of_the_settings_judges_is_read():
    names = [row.name for row in settings().setting if row.kind not in {"harmless", "unknown"}]
    assert len(names) > 10
    assert all(reads_value(name.replace("*", "x")) for name in names)


@pytest.mark.parametrize(
    "name", ["OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_no_such_thing", "OMPI_MCA_pml_ob1_x"]
)
def test_a_value_that_no_rule_reads_is_left_out(name):
    assert public({name: "1"}) == {name: ""}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMPI_MCA_btl", "^openib"), ("OMPI_MCA_btl", "self,vader,tcp"), ("SLURM_MPI_TYPE", "pmix_v5"),
        ("OPAL_PREFIX", "/opt/software/OpenMPI/4.1.4-GCC-12.2.0"),
        ("OMPI_MCA_mca_base_component_path", "/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3"),
    ],
)  # fmt: skip
def test_a_value_that_rules_read_is_kept(name, value):
    assert public({name: value}) == {name: value}
