"""Test that a facts file contains no value that identifies the user, because users send the file to
others.
"""

import msgspec

from toolkit.probe.evidence import VERSION, parse
from toolkit.probe.facts import host_facts

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
