"""Test predictions for modules that a job loads but that were not loaded during the probe."""

from tests.unit.engine.examples import HOST, IMAGE, unread, with_, without
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.launch.loaded import assumption_line, with_runtime
from toolkit.model.prediction import Request
from toolkit.model.site import Container, Site

BARE = without(HOST, "runtime", "apptainer, singularity: not found on PATH")


def site(**container):
    return Site(schema="toolkit.site/1", title="Mine", container=Container(**container))


@every_row(
    ("mine", "modules", "path"),
    [
        (site(command="apptainer", modules=("base", "tools")), (), "apptainer"),
        (site(command="/opt/bin/singularity"), (), "/opt/bin/singularity"),
        (site(command="singularity"), ("Singularity/3.8",), "singularity"),
        (None, ("GCC", "apptainer"), "apptainer"),
        (None, ("swap a singularity/3.8",), "singularity"),
    ],
)
def test_what_brings_a_runtime_puts_it_into_the_facts(mine, modules, path):
    host = with_runtime(BARE, mine, modules)
    assert host.runtime is not None
    assert (host.runtime.path, host.runtime.version, host.runtime.setuid) == (path, "", None)
    assert "runtime" not in host.absent
    assert {"runtime.version", "runtime.settings", "runtime.setuid"} <= set(host.unknown)
    assert assumption_line(host)[0].startswith(f"{path} is assumed to exist, because ")


@every_row("host", [HOST, BARE, unread(HOST, "runtime")])
def test_facts_stay_where_nothing_brings_one_and_where_one_was_found_or_nobody_could_look(host):
    assert with_runtime(host, site(), ("GCC",)) == host
    if host is not BARE:
        assert with_runtime(host, site(modules=("apptainer",)), ()) == host
    assert assumption_line(host) == ()


def test_with_it_a_launch_is_predicted():
    host = with_runtime(BARE, site(modules=("apptainer",)), ())
    assert predict(BARE, IMAGE, Request(nodes=2)).of("srun-pmix").outcome == "unavailable"
    assert predict(host, IMAGE, Request(nodes=2)).chosen == "srun-pmix"


def test_where_the_kernel_allows_no_user_namespaces_its_installation_would_have_to_be_known():
    host = with_runtime(with_(BARE, user_namespaces=False), site(modules=("apptainer",)), ())
    prediction = predict(host, IMAGE, Request(nodes=2)).of("srun-pmix")
    assert prediction.outcome == "unknown"
    assert prediction.plan is not None
    assert "host.runtime.setuid" in prediction.missing
