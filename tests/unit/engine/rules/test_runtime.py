"""Test the rules about releases of container runtimes: how they mount images, and which binds they allow."""

from tests.unit.engine.whole import HOST, IMAGE, absent, case, host, image, runtime, unread, with_
from tests.unit.tables import every_row
from toolkit.engine.judge import judge
from toolkit.engine.planning.proposal import propose
from toolkit.engine.predict import predict, predict_plan
from toolkit.engine.registry import RULES
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Request

CENTOS_7 = {"kernel": "3.10.0-1160.el7.x86_64"}
SETUID = runtime(setuid=True).runtime
NO_RUNTIME = absent(HOST, "runtime")
SQUASHFS = "allow setuid-mount squashfs"
"""Setting since Apptainer 1.3: whether the kernel mounts images in setuid mode."""


def setuid(settings: dict[str, str] | None = None, **more: object):
    return with_(runtime(**{"setuid": True, "settings": settings or {}, **more}), **CENTOS_7)


def suid_fuse(fuse3: str, **more: object):
    return with_(runtime(**{"setuid": True, "version": "1.4.5", "settings": {}, **more}), fuse3=fuse3)


def setting(name: str, value: str):
    return runtime(settings={name: value})


def unbound(*binds: str, **more: object):
    """Return a host whose runtime binds a missing path, and has no option to skip this bind."""
    return runtime(**{"unbound": binds, "version": "1.0.3", **more})


UNNUMBERED = unread(runtime(name="singularity", version=""), "runtime.version")
LOCALTIME = unbound("/etc/localtime", version="1.4.5")
OCI = runtime(name="singularity-ce", version="4.3.7")
OCI_ALWAYS = runtime(name="singularity-ce", version="4.3.7", settings={"oci mode": "yes"})


def plain_user(kernel: str, **more: object):
    return with_(runtime(**more), kernel=kernel)


def pyxis(version: str, kernel: str):
    return with_(runtime(name="pyxis", version=version), kernel=kernel)


SHIFTER = runtime(name="shifter", version="")
"""A host with Shifter, a runtime without recorded launches."""

FIRES = {
    "writable-needs-folders": [
        case(container=("--writable", "--bind", "/storage")),
        case(container=("-w",), binds=("/data:/scratch",)),
    ],
    "runtime-needs-newer-kernel": [
        case(pyxis("0.6.0", "4.9.0-12-amd64")),
    ],
    "runtime-not-measured": [case(SHIFTER, image(format="docker-archive"))],
    "runtime-cannot-read-image": [
        case(runtime(name="singularity", version="2.6.1")),
        case(of=image(format="oci-sif")),
        case(runtime(name="singularity-ce", version="3.11.5"), image(format="oci-sif")),
        case(runtime(name="singularity", version="3.8.7"), image(format="oci-sif")),
        case(runtime(name="singularity-pro", version="3.11-7.el8"), image(format="oci-sif")),
    ],
    "image-kind-forbidden": [
        case(setting("allow container sif", "no")),
        case(setting("allow container dir", "no"), image(format="sandbox")),
        case(setting("allow container squashfs", "no"), image(format="squashfs")),
    ],
    "images-limited": [
        case(setting("limit container paths", "set")),
        case(runtime(setuid=True, settings={"limit container owners": "set"})),
    ],
    "oci-mode": [
        case(OCI_ALWAYS, container=("--no-compat",)),
        case(OCI, image(format="oci-sif")),
        case(OCI, image(format="oci-sif"), container=("--oci", "--no-compat")),
        case(OCI, container=("--oci", "--no-compat")),
        case(OCI_ALWAYS, mode="mpirun-container", container=()),
    ],
    "bind-source-missing": [
        case(unbound("/etc/localtime")),
        case(unbound("/lustre", "/etc/hosts", version="1.4.5"), container=("--no-mount", "/etc/hosts")),
        case(LOCALTIME, container=("--no-mount", "/etc/localtime")),
    ],
    "runtime-retired": [
        case(runtime(name="singularity", version="3.8.7-1.el8")),
        case(runtime(name="singularity-ce", version="3.11.5")),
        case(runtime(version="1.1.9-1.el8")),
    ],
    "runtime-vulnerable": [
        case(runtime(version="1.4.1-1.el9")),
        case(runtime(name="singularity-ce", version="4.3.4-1.el9")),
        case(setuid({"limit container paths": "set"}, version="1.5.0")),
        case(setuid({"limit container paths": "set"}, name="singularity-ce", version="4.4.1")),
    ],
    "image-compression-too-new": [
        case(setuid(version="1.2.5")),
        case(setuid({SQUASHFS: "yes"})),
        case(setuid({SQUASHFS: "iflimited", "limit container paths": "set"})),
        case(setuid({"execution control list": "set"}, version="1.3.0")),
        case(setuid(name="singularity", version="3.8.7")),
        case(setuid(name="singularity-ce", version="4.3.1")),
        case(with_(setuid(version="1.2.5"), kernel="4.12.14-122.201-default")),
    ],
    "squashfuse-absent": [
        case(absent(HOST, "squashfuse")),
        case(absent(setuid(), "squashfuse")),
        case(runtime(name="singularity-ce", version="4.0.3")),
        case(runtime(name="singularity-pro", version="3.11-7.el8")),
        case(runtime(name="singularity", version="3.8.7-1.el8", setuid=False)),
        case(runtime(version="1.0.3")),
        case(plain_user("4.12.14-122.201-default", name="singularity-ce", version="4.3.1")),
        case(plain_user("4.12.14-122.201-default", name="singularity-pro", version="4.1.6")),
    ],
    "squashfuse-refused": [
        case(plain_user("4.12.14-122.201-default")),
        case(plain_user("3.10.0-1062.el7.x86_64")),
        case(with_(setuid(), kernel="4.12.14-122.201-default"), container=("--fakeroot",)),
        case(with_(setuid(), kernel="4.12.14-122.201-default"), container=("--userns",)),
    ],
    "fuse-device-closed": [
        case(with_(HOST, fuse_device=False)),
        case(with_(setuid(), fuse_device=False), container=("--userns",)),
    ],
    "kernel-cannot-mount": [
        case(with_(setuid(version="1.2.5"), kernel_mounts=("loop",))),
        case(with_(setuid(name="singularity", version="2.2"), kernel_mounts=())),
    ],
    "fuse3-too-old": [
        case(suid_fuse("3.2.1")),
        case(suid_fuse("3.2.1", version="1.3.0", settings={SQUASHFS: "iflimited"})),
    ],
    "home-not-mounted": [case(setting("mount home", "no"))],
    "binds-refused": [
        case(setting("user bind control", "no")),
        case(setting("user bind control", "no"), binds=("/data",)),
    ],
    "binds-need-folders": [case(runtime(settings={"enable overlay": "no", "enable underlay": "no"}))],
    "device-files-hidden": [
        case(setting("mount dev", "minimal")),
        case(setting("mount dev", "minimal"), binds=("/dev/shm",)),
        case(setting("mount dev", "no"), binds=("/dev",)),
    ],
    "session-folder-small": [case(setting("sessiondir max size", "16"))],
}
QUIET = {
    "writable-needs-folders": [
        case(),
        case(binds=("/storage",)),
        case(container=("--writable",), binds=("/data:/mnt",)),
        case(SHIFTER, container=("--writable",), binds=("/storage",)),
    ],
    "runtime-needs-newer-kernel": [
        case(),
        case(pyxis("0.7.0", "4.9.0-12-amd64")),
        case(pyxis("0.5.0", "3.10.0-1160.el7.x86_64")),
        case(pyxis("0.6.0", "5.4.0-42-generic")),
        case(NO_RUNTIME),
    ],
    "runtime-not-measured": [case()],
    "runtime-cannot-read-image": [
        case(),
        case(NO_RUNTIME),
        case(runtime(name="singularity-ce", version="4.1.0"), image(format="oci-sif")),
        case(runtime(name="singularity-pro", version="4.1.7-1.el9"), image(format="oci-sif")),
        case(runtime(name="singularity", version="2.6.1"), image(format="sandbox")),
        case(UNNUMBERED, image(format="sandbox")),
        case(runtime(name="singularity", version="", seen=False)),
    ],
    "image-kind-forbidden": [
        case(),
        case(setting("allow container dir", "no")),
        case(setting("allow container sif", "yes")),
        case(setting("allow container sif", "no"), image(format="docker-archive")),
    ],
    "images-limited": [case(), case(NO_RUNTIME)],
    "oci-mode": [
        case(),
        case(NO_RUNTIME),
        case(OCI),
        case(OCI_ALWAYS, container=("--no-oci",)),
        case(OCI_ALWAYS),
        case(runtime(settings={"oci mode": "yes"})),
        case(runtime(name="singularity-ce", version="3.11.5"), container=("--oci",)),
    ],
    "bind-source-missing": [case(), case(NO_RUNTIME)],
    "runtime-retired": [
        case(),
        case(NO_RUNTIME),
        case(runtime(name="singularity-ce", version="4.3.1")),
        case(runtime(name="singularity-pro", version="3.11-7.el8")),
    ],
    "runtime-vulnerable": [
        case(),
        case(NO_RUNTIME),
        case(runtime(version="1.4.5")),
        case(setuid({}, version="1.5.0")),
        case(setuid({"limit container paths": "set"}, version="1.5.1")),
        case(setuid({"limit container paths": "set"}, name="singularity-ce", version="4.4.2")),
        case(runtime(version="1.5.0", settings={"limit container paths": "set"})),
        case(runtime(name="singularity-pro", version="4.3.8")),
    ],
    "image-compression-too-new": [
        case(),
        case(host(runtime=SETUID)),
        case(host(**CENTOS_7)),
        case(setuid(version="1.2.5"), image(compression="gzip")),
        case(setuid()),
        case(setuid({SQUASHFS: "no", "limit container owners": "set"})),
        case(setuid({"allow kernel squashfs": "no"}, name="singularity-ce", version="4.3.1")),
        case(absent(host(**CENTOS_7), "runtime")),
    ],
    "squashfuse-absent": [
        case(),
        case(absent(runtime(setuid=True, settings={SQUASHFS: "yes"}), "squashfuse")),
        case(absent(runtime(setuid=True, version="1.2.5"), "squashfuse")),
        case(setuid()),
        case(runtime(name="singularity-ce", version="4.0.3", settings={"sif fuse": "yes"})),
        case(runtime(name="singularity-ce", version="4.3.1")),
        case(plain_user("3.10.0-1160.el7.x86_64")),
        case(plain_user("4.18.0-553.el8_10.x86_64")),
        case(NO_RUNTIME),
        case(absent(HOST, "squashfuse"), image(format="sandbox")),
    ],
    "fuse-device-closed": [
        case(),
        case(with_(HOST, fuse_device=True)),
        case(with_(setuid(), fuse_device=False)),
        case(with_(HOST, fuse_device=False), image(format="sandbox")),
        case(absent(with_(HOST, fuse_device=False), "squashfuse")),
    ],
    "squashfuse-refused": [
        case(),
        case(NO_RUNTIME),
        case(plain_user("3.10.0-1160.el7.x86_64")),
        case(plain_user("4.18.0-553.el8_10.x86_64")),
        case(setuid()),
        case(with_(setuid(), kernel="4.18.0-553.el8_10.x86_64"), container=("--fakeroot",)),
        case(absent(plain_user("4.12.14-122.201-default"), "squashfuse")),
        case(plain_user("4.12.14-122.201-default", name="singularity-ce", version="4.3.1")),
        case(plain_user("4.12.14-122.201-default"), image(format="sandbox")),
        case(with_(plain_user("4.12.14"), environment={"APPTAINER_UNSQUASH": ""})),
        case(plain_user("3.10.0-514.el7.x86_64", name="singularity", version="2.2.1")),
        case(plain_user("3.10.0-514.el7.x86_64", name="pyxis", version="0.20.0")),
    ],
    "kernel-cannot-mount": [
        case(with_(setuid(version="1.2.5"), kernel_mounts=("loop", "squashfs"))),
        case(host(kernel_mounts=())),
        case(with_(setuid(version="1.2.5"), kernel_mounts=()), image(format="sandbox")),
        case(with_(setuid(name="shifter", version="23.02"), kernel_mounts=())),
        case(with_(setuid(version="1.2.5"), kernel_mounts=()), container=("--userns",)),
        case(with_(setuid(), kernel_mounts=())),
    ],
    "fuse3-too-old": [
        case(suid_fuse("3.3.0")),
        case(suid_fuse("3.2.1", version="1.2.5")),
        case(suid_fuse("3.2.1", settings={SQUASHFS: "yes"})),
        case(suid_fuse("3.2.1", settings={SQUASHFS: "iflimited", "limit container paths": "set"})),
        case(suid_fuse("3.2.1", name="singularity-ce", version="4.3.1")),
        case(suid_fuse("3.2.1", setuid=False)),
        case(suid_fuse("3.2.1"), image(format="sandbox")),
        case(with_(suid_fuse("3.2.1"), environment={"APPTAINER_UNSQUASH": "1"})),
        case(absent(suid_fuse("3.2.1"), "fuse3")),
        case(NO_RUNTIME),
    ],
    "home-not-mounted": [case(), case(NO_RUNTIME)],
    "binds-refused": [case(), case(NO_RUNTIME)],
    "binds-need-folders": [case(), case(setting("enable overlay", "no"))],
    "device-files-hidden": [
        case(),
        case(host(runtime=with_(SETUID, settings={}))),
        case(setting("mount dev", "minimal"), binds=("/dev",)),
    ],
    "session-folder-small": [case(), case(setting("sessiondir max size", "unlimited"))],
}
UNDECIDED = {
    "writable-needs-folders": [case(unread(HOST, "runtime"), container=("--writable",), binds=("/storage",))],
    "runtime-needs-newer-kernel": [
        case(unread(pyxis("0.6.0", "4.9.0"), "kernel")),
        case(unread(pyxis("", "4.9.0"), "runtime.version")),
    ],
    "runtime-not-measured": [case(unread(HOST, "runtime"))],
    "oci-mode": [case(runtime(name="singularity", version="", settings={"oci mode": "yes"}))],
    "runtime-cannot-read-image": [case(UNNUMBERED), case(UNNUMBERED, image(format="oci-sif"))],
    "image-compression-too-new": [
        case(unread(HOST, "kernel")),
        case(setuid(), unread(IMAGE, "compression")),
        case(unread(setuid(version="1.2.5"), "runtime.setuid")),
        case(unread(setuid(), "runtime.settings")),
        case(setuid(version="")),
    ],
    "fuse-device-closed": [case(unread(with_(HOST, fuse_device=False), "squashfuse"))],
    "squashfuse-refused": [
        case(unread(plain_user("4.12.14"), "squashfuse")),
        case(unread(plain_user("4.12.14"), "runtime.setuid")),
        case(plain_user("4.12.14", name="singularity", version="")),
        case(unread(HOST, "kernel")),
    ],
    "kernel-cannot-mount": [case(with_(runtime(setuid=None, version="1.2.5"), kernel_mounts=()))],
    "squashfuse-absent": [
        case(unread(HOST, "squashfuse")),
        case(unread(runtime(name="singularity-ce", version="4.3.1"), "kernel")),
        case(UNNUMBERED),
        case(unread(runtime(setuid=True), "runtime.settings")),
    ],
    "fuse3-too-old": [
        case(unread(HOST, "runtime")),
        case(unread(suid_fuse("3.2.1"), "runtime.settings")),
        case(unread(suid_fuse("3.2.1"), "runtime.setuid")),
        case(suid_fuse("3.2.1", version="")),
    ],
    "runtime-retired": [case(unread(HOST, "runtime")), case(UNNUMBERED)],
    "runtime-vulnerable": [case(unread(HOST, "runtime")), case(UNNUMBERED)],
}
OUTCOMES = {
    "writable-needs-folders": "unknown",
    "runtime-needs-newer-kernel": "unavailable",
    "runtime-cannot-read-image": "unavailable",
    "bind-source-missing": "unavailable",
    "oci-mode": "unknown",
    "image-kind-forbidden": "unavailable",
    "image-compression-too-new": "unavailable",
    "fuse-device-closed": "unavailable",
    "squashfuse-refused": "unavailable",
    "kernel-cannot-mount": "unavailable",
    "fuse3-too-old": "unavailable",
}


@every_row("broken", FIRES["runtime-cannot-read-image"])
def test_an_image_that_the_runtime_cannot_read_is_not_launched(broken):
    rules = tuple(r for r in RULES if r.id == "runtime-cannot-read-image")
    prediction, _ = judge(broken, rules)
    assert prediction.outcome == "unavailable"


def test_refused_binds_name_those_of_the_plan():
    rules = tuple(r for r in RULES if r.id == "binds-refused")
    _, findings = judge(FIRES["binds-refused"][1], rules)
    assert findings[0].evidence == ("host: apptainer.conf: user bind control = no", "plan: --bind /data")


@every_row(
    ("of", "words"),
    [
        (LOCALTIME, ("--no-mount", "/etc/localtime")),
        (unbound("/lustre:/data:ro", "/etc/hosts", version="1.1.0"), ("--no-mount", "/data,/etc/hosts")),
        (unbound("/a,b", "/-/tools", "/lustre:", version="1.4.5"), ("--no-mount", "/lustre")),
        (unbound("/lustre", name="singularity-ce", version="3.10.0"), ("--no-mount", "/lustre")),
        (unbound("/lustre", name="singularity-ce", version="3.9.9"), ()),
        (unbound("/lustre", name="singularity", version="3.8.7"), ()),
    ],
)
def test_the_plan_leaves_out_what_the_runtime_cannot_bind(of: HostFacts, words: tuple[str, ...]):
    without_gpus = absent(of, "gpu_driver")
    assert propose(without_gpus, IMAGE, Request(), "srun-pmix").container == words


def test_a_launch_that_leaves_it_out_works():
    verdict = predict(LOCALTIME, IMAGE, Request())
    assert verdict.chosen is not None
    found = next(f for f in verdict.findings if f.id == "bind-source-missing")
    assert found.severity == "warning"
    assert "host: apptainer.conf: bind path = /etc/localtime: missing" in found.evidence


def test_without_a_way_to_leave_it_out_nothing_starts():
    verdict = predict(unbound("/etc/localtime"), IMAGE, Request())
    assert verdict.chosen is None
    assert {p.outcome for p in verdict.predictions} == {"unavailable"}


def test_a_native_image_is_kept_from_an_oci_runtime_that_the_site_asks_for():
    """Without ``--no-oci``, every rank is a world of size 1, because the OCI runtime removes the launcher's
    variables.
    """
    verdict = predict(OCI_ALWAYS, IMAGE, Request())
    (found,) = (p for p in verdict.predictions if p.mode == "srun-pmix")
    assert found.plan is not None
    assert (found.outcome, found.plan.container[0]) == ("ok", "--no-oci")
    left = predict_plan(OCI_ALWAYS, IMAGE, Request(), with_(found.plan, container=()))
    assert (left.outcome, left.findings[0]) == ("singletons", "environment-cleaned")
    assert left.because.startswith("OCI mode removes PMIX_*")
    plain = predict(OCI, IMAGE, Request()).of("srun-pmix").plan
    assert plain is not None
    assert not {"--oci", "--no-oci"} & set(plain.container)


def test_an_oci_sif_is_started_by_what_reads_it_and_nobody_knows_what_becomes_of_it():
    verdict = predict(OCI, image(format="oci-sif"), Request())
    assert verdict.chosen is None
    assert {p.outcome for p in verdict.predictions if p.mode in {"srun-pmix", "mpirun-host", "gloo"}} == {
        "unknown"
    }
    plan = verdict.of("srun-pmix").plan
    assert plan is not None
    assert plan.container[:2] == ("--oci", "--no-compat")


def test_a_variable_that_asks_for_an_oci_runtime_is_taken_away_or_foretells_singletons():
    asking = with_(OCI, environment={"SINGULARITY_OCI": ""})
    ours = predict(asking, IMAGE, Request()).of("srun-pmix")
    assert ours.plan is not None
    assert (ours.outcome, ours.plan.unset) == ("ok", ("SINGULARITY_OCI",))
    assert predict_plan(asking, IMAGE, Request(), with_(ours.plan, unset=())).outcome == "singletons"
