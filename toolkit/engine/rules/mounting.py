"""Rules about how the runtime opens an image: through a kernel mount, with squashfuse, or by unpacking it."""

from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.host_variables import runtime_prefixes
from toolkit.engine.rule import Hit, rule
from toolkit.engine.rules.runtime import ask_release, setting
from toolkit.engine.traits import bind_targets
from toolkit.engine.wireup import IN_NAMESPACE, options
from toolkit.knowledge import runtime
from toolkit.runtime import apptainer
from toolkit.versions import older, within

_IN_EVERY_IMAGE = {"/tmp", "/var/tmp", "/home", "/mnt", "/opt", "/srv", "/etc", "/usr", "/var", "/dev"}  # noqa: S108
"""Folders that toolkit expects in every image, because the Filesystem Hierarchy Standard names them."""
_MENDED = "4.0"
"""The oldest Linux release to which a distribution may have added features of later kernels."""


_GIVEN_FUSE = "3.3"
"""The first libfuse release that accepts an open /dev/fuse as mount point."""


def _by_kernel(case: Case, *, failed_only: bool) -> bool:
    """Return whether the kernel mounts the image: the runtime is setuid, and its release and settings allow
    kernel mounts. For ``failed_only``, see :meth:`toolkit.engine.case.Case.ask`.
    """
    if options(case, IN_NAMESPACE):
        return False
    case.ask("host.runtime.setuid", failed_only=failed_only)
    found = case.host_facts.runtime
    if found is None or not found.setuid:
        return False
    ask_release(case)
    row = runtime.setuid_fuse(found.name, found.version)
    if row is None:
        return True
    case.ask("host.runtime.settings", failed_only=failed_only)
    return row.by_kernel(found.settings)


@rule(
    "image-compression-too-new",
    "The kernel of the host does not support the compression of the image",
    severity="error",
    fix="build the SIF with gzip: `apptainer build --mksquashfs-args '-comp gzip'`",
    source="recipes/knowledge/runtime.toml, [[compression]], [[setuid_fuse]]",
    facts=("host.runtime", "host.kernel", "host.runtime.setuid", "host.runtime.version", "image.compression"),
)
def image_compression_too_new(case: Case) -> Hit | None:
    """A setuid runtime mounts the file system in a SIF through the kernel. If the kernel does not support the
    compression of the file system, the runtime reports 'failed to mount squashfs filesystem: invalid
    argument'. Apptainer 1.3 and later mount the image with squashfuse instead, unless a setting, such as
    'allow setuid-mount squashfs' or 'limit container paths', requires a mount through the kernel. If the host
    has Linux 4, the outcome is unknown, because the distribution may have added support for the compression.
    """
    case.have("host.runtime")
    case.ask("host.kernel", failed_only=True)
    rows = [r for r in runtime.runtime().compression if older(case.host_facts.kernel, r.kernel)]
    if not rows:
        return None
    case.ask("image.compression", failed_only=True)
    row = next((r for r in rows if r.name == case.image_facts.compression), None)
    if row is None:
        return None
    if not _by_kernel(case, failed_only=True):
        return None
    kernel = case.host_facts.kernel
    title = f"an image compressed with {row.name} needs Linux {row.kernel} or later; the host has {kernel}"
    evidence = case.cite("image.compression", "host.kernel", "host.runtime")
    if older(kernel, _MENDED):
        return Hit(evidence, "unavailable", title, title, source=row.source)
    because = f"{title}, but the distribution may have added support for {row.name}"
    return Hit(evidence, "unknown", because, source=row.source)


@rule(
    "kernel-cannot-mount",
    "The kernel of the host cannot mount images",
    severity="error",
    fix=(
        "unpack the image once with `apptainer build --sandbox DIR IMAGE`, and start DIR; or start the "
        "image without setuid: `--userns`; or ask the administrators to load the kernel modules loop and "
        "squashfs on the compute nodes"
    ),
    source=(
        "apptainer/singularity issues 263 and 813 ('Could not open loop device /dev/loop0'), 3465 "
        "('Failed to mount squashfs image in (read only): No such device')"
    ),
    facts=("host.runtime", "host.runtime.setuid", "host.runtime.version", "host.kernel_mounts"),
)
def kernel_cannot_mount(case: Case) -> Hit | None:
    """A setuid runtime mounts the file system in a SIF through the kernel and a loop device. The kernel of a
    compute node may lack the module loop or squashfs, even if the login node's kernel has both modules.
    """
    case.have("host.runtime")
    runtime_name = case.host_facts.runtime.name if case.host_facts.runtime else ""
    there = case.host_facts.kernel_mounts
    lacks = [name for name in ("loop", "squashfs") if there is not None and name not in there]
    if not lacks or runtime_name not in apptainer.NAMES or case.image.format == "sandbox":
        return None
    if not _by_kernel(case, failed_only=False):
        return None
    found = {"loop": "loop devices", "squashfs": "squashfs"}
    title = f"The kernel of the host has no {' and no '.join(found[name] for name in lacks)}"
    because = f"a setuid runtime mounts the image through the kernel, which has no {found[lacks[0]]}"
    return Hit(case.cite("host.kernel_mounts", "host.runtime"), "unavailable", because, title)


@rule(
    "fuse3-too-old",
    "A setuid Apptainer needs libfuse 3.3 or later to mount an image with squashfuse",
    severity="error",
    fix=(
        "start the image without setuid: `--userns`; or set APPTAINER_UNSQUASH=1, so that Apptainer "
        "unpacks the image at each start; or ask the administrators to update fuse3-libs (RHEL 8.6 has "
        "3.3.0) or to remove apptainer-suid"
    ),
    source=(
        "apptainer/apptainer issues 3348 ('fusermount3: mountpoint /dev/fuse is not a directory or a "
        "regular file') and 3357; libfuse:ChangeLog.rst 3.3.0"
    ),
    facts=("host.runtime", "host.runtime.setuid", "host.runtime.version", "host.fuse3"),
)
def fuse3_too_old(case: Case) -> Hit | None:
    """A setuid Apptainer 1.3 or later opens /dev/fuse itself, and gives squashfuse the open file instead of a
    mount folder. libfuse 3.3 and later accepts an open /dev/fuse; RHEL 8.0 to 8.5 have libfuse 3.2.1.
    """
    case.have("host.runtime")
    found, there = case.host_facts.runtime, case.host_facts.fuse3
    if found is None or found.name != "apptainer":
        return None
    if not older(there, _GIVEN_FUSE) and not case.has_failed("host.fuse3"):
        return None
    if case.image.format == "sandbox" or older(found.version, "1.3") or _unpacks(case):
        return None
    if _by_kernel(case, failed_only=False) or not found.setuid:
        return None
    case.ask("host.fuse3", failed_only=True)
    title = f"Apptainer {found.version} with setuid needs libfuse {_GIVEN_FUSE}; the host has {there}"
    because = (
        f"squashfuse cannot mount the image: libfuse {there} cannot use the /dev/fuse that Apptainer opened"
    )
    return Hit(case.cite("host.fuse3", "host.runtime"), "unavailable", because, title)


@rule(
    "runtime-needs-newer-kernel",
    "The host's container runtime needs a newer kernel than the host has",
    severity="error",
    fix=(
        "ask the administrators to install a later release of the runtime, or a newer kernel on the "
        "compute nodes"
    ),
    source="recipes/knowledge/runtime.toml, [[kernel]]",
    facts=("host.runtime", "host.runtime.version", "host.kernel"),
)
def runtime_needs_newer_kernel(case: Case) -> Hit | None:
    """A runtime needs certain kernel features, and cannot start a container without these features. toolkit
    reports nothing if the host's distribution may have added the features to its older kernel.
    """
    case.have("host.runtime")
    case.ask("host.kernel", failed_only=True)
    found, kernel = case.host_facts.runtime, case.host_facts.kernel
    name = found.name if found else ""
    rows = [r for r in runtime.runtime().kernel if r.name == name and r.lacks(kernel or "")]
    if not rows or found is None:
        return None
    if not found.version:
        raise Undecided("host.runtime.version")
    row = next((r for r in rows if within(found.version, r.versions)), None)
    if row is None:
        return None
    because = f"{row.because}; the host has Linux {kernel}"
    evidence = case.cite("host.runtime", "host.kernel")
    return Hit(evidence, "unavailable", because, because, source=row.source)


@rule(
    "writable-needs-folders",
    "With --writable, the runtime binds only to folders that the image has",
    severity="error",
    fix="create the folder in the image, or use `--writable-tmpfs` instead of `--writable`",
    source=(
        "apptainer/apptainer issue 1895 (\"By using --writable, Apptainer can't create /storage destination "
        'automatically without overlay or underlay")'
    ),
    facts=("host.runtime",),
)
def writable_needs_folders(case: Case) -> Hit | None:
    """The runtime adds missing mount points to the container with an overlay or underlay. With --writable,
    the container has neither of them, so the image must contain every mount point.
    """
    case.have("host.runtime")
    found = case.host_facts.runtime
    asked = options(case, {"--writable", "-w"})
    if found is None or found.name not in apptainer.NAMES or not asked:
        return None
    targets = [target for target in bind_targets(case.plan) if target not in _IN_EVERY_IMAGE]
    if not targets:
        return None
    because = f"toolkit does not know whether the image has {targets[0]}, which --writable does not create"
    return Hit((*asked.values(), *case.cite("host.runtime")), "unknown", because)


_UNPACK_ONCE = "unpack the image once with `apptainer build --sandbox DIR IMAGE`, and start DIR"


@rule(
    "squashfuse-absent",
    "Each rank unpacks the whole image before its program starts",
    severity="warning",
    fix=f"{_UNPACK_ONCE}; or ask the administrators to install squashfuse",
    source="recipes/knowledge/runtime.toml, [[mount]], [fuse]; apptainer/apptainer issue 2324 (--fakeroot)",
    facts=("host.runtime", "host.runtime.setuid", "host.runtime.version", "host.squashfuse", "host.kernel"),
    advice=True,
)
def squashfuse_absent(case: Case) -> Hit | None:
    """A runtime without setuid cannot mount the image through the kernel, and needs squashfuse. SingularityCE
    before 4.1 and Singularity 3 do not support squashfuse. Without squashfuse, the runtime unpacks the image
    into a temporary folder at each start, once for each rank. Unpacking takes minutes, and the unpacked files
    need several times the image's size in /tmp. Without setuid, squashfuse needs Linux 4.18. On an older
    kernel, SingularityCE 4.1 and later also unpacks the image.
    """
    found = case.host.runtime
    if found is None or found.name not in apptainer.NAMES or case.image.format == "sandbox":
        return None
    if _by_kernel(case, failed_only=False):
        return None
    ask_release(case)
    row = runtime.mount(found.name, found.version)
    if row and row.way == "unpacked" and setting(case, row.unless) != "yes":
        title = f"{found.name} {found.version} unpacks the whole image for each rank before the rank starts"
        fix = f"{_UNPACK_ONCE}; or ask the administrators to install a release that supports squashfuse"
        return Hit(case.cite("host.runtime"), title=title, fix=fix, source=row.source)
    if not case.host.squashfuse:
        return Hit(case.cite("host.runtime", "host.squashfuse"))
    if found.setuid or row is None or row.way != "either":
        return None
    if runtime.runtime().fuse.allows(case.host.kernel or ""):
        return None
    fix = f"{_UNPACK_ONCE}; or ask the administrators to install a newer kernel or a setuid runtime"
    source = runtime.runtime().fuse.source
    return Hit(case.cite("host.kernel", "host.runtime"), fix=fix, source=source)


@rule(
    "squashfuse-refused",
    "The kernel of the host does not let squashfuse mount the image",
    severity="error",
    fix=(
        f"{_UNPACK_ONCE}; or set APPTAINER_UNSQUASH=1, so that each rank unpacks the image; or ask the "
        "administrators to install apptainer-suid"
    ),
    source="recipes/knowledge/runtime.toml, [[mount]], [fuse]",
    facts=("host.runtime", "host.runtime.setuid", "host.runtime.version", "host.squashfuse", "host.kernel"),
)
def squashfuse_refused(case: Case) -> Hit | None:
    """Without setuid, or with --fakeroot or --userns, Apptainer 1.1 and later mounts the image with
    squashfuse in a user namespace. Such mounts need Linux 4.18. On an older kernel, Apptainer does not unpack
    the image, but fails with 'fusermount3: mount failed: Operation not permitted'.
    """
    case.have("host.runtime")
    if not _mounts(case):
        return None
    case.ask("host.kernel", failed_only=True)
    fuse, kernel = runtime.runtime().fuse, case.host_facts.kernel
    if kernel is None or fuse.allows(kernel) or not _by_squashfuse(case):
        return None
    within = options(case, IN_NAMESPACE)
    how = f"with {next(iter(within))}" if within else "without setuid"
    title = f"squashfuse {how} needs Linux {fuse.kernel} or later; the host has {kernel}"
    evidence = (*case.cite("host.kernel", "host.runtime"), *within.values())
    return Hit(evidence, "unavailable", title, title, source=fuse.source)


@rule(
    "fuse-device-closed",
    "The user cannot open /dev/fuse, which squashfuse needs to mount the image",
    severity="error",
    fix=(
        f"{_UNPACK_ONCE}; or set APPTAINER_UNSQUASH=1, so that each rank unpacks the image; or ask the "
        "administrators to load the kernel module fuse and to let all users open /dev/fuse"
    ),
    source=(
        "recipes/knowledge/runtime.toml, [[mount]]; measured: Apptainer 1.4.5 on nodes whose users cannot "
        "open /dev/fuse"
    ),
    facts=(
        "host.runtime",
        "host.runtime.setuid",
        "host.runtime.version",
        "host.squashfuse",
        "host.fuse_device",
    ),
)
def fuse_device_closed(case: Case) -> Hit | None:
    """Without setuid, or with --fakeroot or --userns, Apptainer 1.1 and later mounts the image with
    squashfuse. The mount fails if /dev/fuse is missing, or if the user has no permission to open it.
    """
    case.have("host.runtime")
    if case.host_facts.fuse_device is not False or not _by_squashfuse(case):
        return None
    because = "squashfuse cannot mount the image, because the user cannot open /dev/fuse"
    return Hit(case.cite("host.fuse_device", "host.runtime"), "unavailable", because)


def _mounts(case: Case) -> bool:
    """Return whether the runtime is Apptainer or Singularity, and mounts rather than unpacks the image."""
    found = case.host_facts.runtime
    is_apptainer = found is not None and found.name in apptainer.NAMES
    return is_apptainer and case.image.format != "sandbox" and not _unpacks(case)


def _by_squashfuse(case: Case) -> bool:
    """Return whether the runtime mounts the image with squashfuse in a user namespace."""
    found = case.host_facts.runtime
    if found is None or not _mounts(case):
        return False
    within = options(case, IN_NAMESPACE)
    case.ask("host.squashfuse", *([] if within else ["host.runtime.setuid"]), failed_only=True)
    if not (within or found.setuid is False) or not case.host_facts.squashfuse:
        return False
    ask_release(case)
    row = runtime.mount(found.name, found.version)
    return row is not None and row.way == "squashfuse"


def _unpacks(case: Case) -> bool:
    """Return whether a variable, such as APPTAINER_UNSQUASH, makes the runtime unpack the image
    (apptainer/apptainer:cmd/internal/cli at v1.4.5).
    """
    names = {f"{runtime_name}_UNSQUASH" for runtime_name in runtime_prefixes(case.host_facts)}
    return bool(names & (set(case.host_facts.environment) - set(case.plan.unset)))


@rule(
    "hooks-need-glibc",
    "Hooks of the container runtime need glibc in the image",
    severity="error",
    fix=(
        "use an image with glibc; or disable the hooks in the environment definition file (EDF), as the "
        "documentation of the computing centre describes"
    ),
    source="recipes/knowledge/runtime.toml, [[glibc_hooks]]",
    facts=("host.runtime", "image.glibc"),
)
def hooks_need_glibc(case: Case) -> Hit | None:
    """Hooks of some runtimes mount libraries of the host and then run ``ldconfig`` in the container. The
    hooks need the ``ldconfig`` of glibc. The ``ldconfig`` of an image with musl, such as Alpine Linux, is a
    different program, so the hook fails and the container does not start.
    """
    found = case.host_facts.runtime
    row = next((r for r in runtime.runtime().glibc_hooks if found and r.name == found.name), None)
    if row is None:
        return None
    case.ask("image.glibc", failed_only=True)
    if "glibc" not in case.image_facts.absent:
        return None
    return Hit(case.cite("host.runtime", "image.glibc"), "unavailable", row.because, source=row.source)
