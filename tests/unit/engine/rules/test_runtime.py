"""Releases of the container runtime, how they mount an image, and what they let in."""

import pytest

from tests.unit.engine.whole import HOST, IMAGE, absent, case, host, image, runtime, unread, with_
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES

CENTOS_7 = {"kernel": "3.10.0-1160.el7.x86_64"}
SETUID = runtime(setuid=True).runtime
NO_RUNTIME = absent(HOST, "runtime")


def setting(name: str, value: str):
    """Return a host whose runtime has another setting."""
    return runtime(settings={name: value})


FIRES = {
    "runtime-cannot-read-image": [
        case(runtime(name="singularity", version="2.6.1")),
        case(of=image(format="oci-sif")),
        case(runtime(name="singularity-ce", version="3.11.5"), image(format="oci-sif")),
        case(runtime(name="singularity", version="3.8.7"), image(format="oci-sif")),
    ],
    "runtime-retired": [
        case(runtime(name="singularity", version="3.8.7-1.el8")),
        case(runtime(name="singularity-ce", version="3.11.5")),
        case(runtime(version="1.1.9-1.el8")),
    ],
    "image-compression-too-new": [case(host(runtime=SETUID, **CENTOS_7))],
    "squashfuse-absent": [case(absent(HOST, "squashfuse"))],
    "home-not-mounted": [case(setting("mount home", "no"))],
    "binds-refused": [
        case(setting("user bind control", "no")),
        case(setting("user bind control", "no"), binds=("/data",)),
    ],
    "binds-need-folders": [case(runtime(settings={"enable overlay": "no", "enable underlay": "no"}))],
    "device-files-hidden": [case(setting("mount dev", "minimal")), case(setting("mount dev", "no"))],
    "session-folder-small": [case(setting("sessiondir max size", "16"))],
}
QUIET = {
    "runtime-cannot-read-image": [
        case(),
        case(NO_RUNTIME),
        case(runtime(name="singularity-ce", version="4.1.0"), image(format="oci-sif")),
        case(runtime(name="singularity", version="2.6.1"), image(format="sandbox")),
    ],
    "runtime-retired": [case(), case(NO_RUNTIME), case(runtime(name="singularity-ce", version="4.3.1"))],
    "image-compression-too-new": [
        case(),
        case(host(runtime=SETUID)),
        case(host(**CENTOS_7)),
        case(host(runtime=SETUID, **CENTOS_7), image(compression="gzip")),
        case(absent(host(**CENTOS_7), "runtime")),
    ],
    "squashfuse-absent": [
        case(),
        case(absent(host(runtime=SETUID), "squashfuse")),
        case(NO_RUNTIME),
        case(absent(HOST, "squashfuse"), image(format="sandbox")),
    ],
    "home-not-mounted": [case(), case(NO_RUNTIME)],
    "binds-refused": [case(), case(NO_RUNTIME)],
    "binds-need-folders": [case(), case(setting("enable overlay", "no"))],
    "device-files-hidden": [case(), case(host(runtime=with_(SETUID, settings={})))],
    "session-folder-small": [case(), case(setting("sessiondir max size", "unlimited"))],
}
UNDECIDED = {
    "image-compression-too-new": [case(host(runtime=SETUID, **CENTOS_7), unread(IMAGE, "compression"))],
    "squashfuse-absent": [case(unread(HOST, "squashfuse"))],
    "runtime-retired": [case(unread(HOST, "runtime"))],
}
OUTCOMES = {"runtime-cannot-read-image": "unavailable"}


@pytest.mark.parametrize("broken", FIRES["runtime-cannot-read-image"])
def test_an_image_that_the_runtime_cannot_read_is_not_launched(broken):
    rules = tuple(r for r in RULES if r.id == "runtime-cannot-read-image")
    prediction, _ = judge(broken, rules)
    assert prediction.outcome == "unavailable"


def test_refused_binds_name_those_of_the_plan():
    rules = tuple(r for r in RULES if r.id == "binds-refused")
    _, findings = judge(FIRES["binds-refused"][1], rules)
    assert findings[0].evidence == ("host: apptainer.conf: user bind control = no", "plan: --bind /data")
