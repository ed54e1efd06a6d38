"""Test the variables in a facts file: it contains values that a rule needs, but none that identifies the
user.
"""

from tests.unit.tables import every_row
from toolkit.knowledge.settings import reads_value, settings
from toolkit.probe.read.withheld import public


def test_every_value_that_a_row_of_the_settings_judges_is_read():
    valueless = {"harmless", "tuning", "unknown", "any"}
    names = [row.name for row in settings().setting if row.kind not in valueless]
    assert len(names) > 10
    assert all(reads_value(name.replace("*", "x")) for name in names)


@every_row("name", ["OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_no_such_thing", "OMPI_MCA_pml_ob1_x"])
def test_a_value_that_no_rule_reads_is_left_out(name):
    assert public({name: "1"}) == {name: ""}


@every_row(
    ("name", "value"),
    [
        ("OMPI_MCA_btl", "^openib"), ("OMPI_MCA_btl", "self,vader,tcp"), ("SLURM_MPI_TYPE", "pmix_v5"),
        ("OPAL_PREFIX", "/opt/software/OpenMPI/4.1.4-GCC-12.2.0"),
        ("OMPI_MCA_mca_base_component_path", "/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3"),
    ],
)  # fmt: skip
def test_a_value_that_rules_read_is_kept(name, value):
    assert public({name: value}) == {name: value}


def test_folders_that_a_module_binds_are_kept_and_personal_ones_are_masked():
    given = {
        "SINGULARITY_BIND": "/opt/cray,/var/spool,/scratch/~/x",
        "APPTAINERENV_LD_LIBRARY_PATH": "/opt/cray/pe/lib64:/home/ada/lib:relative",
        "SINGULARITYENV_FOO": "/opt/x",
        "APPTAINER_BINDPATH": "",
    }
    assert public(given) == {
        "SINGULARITY_BIND": "/opt/cray,/var/spool,-",
        "APPTAINERENV_LD_LIBRARY_PATH": "/opt/cray/pe/lib64:-:-",
        "SINGULARITYENV_FOO": "",
        "APPTAINER_BINDPATH": "",
    }
