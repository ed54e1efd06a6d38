"""Rules about the container runtime: its release and its settings."""

from itertools import pairwise

from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.host_mpi import provider_guarded
from toolkit.engine.rule import MPI_MODES, TRY_IT, Hit, rule
from toolkit.engine.traits import bind_target, has_option, mounted_folders, runtime_of
from toolkit.engine.wireup import binds_devices, clearing_options, in_oci_mode
from toolkit.knowledge import runtime


def ask_release(case: Case) -> None:
    """Raise ``Undecided`` if the behaviour of the host's runtime depends on its release, but the release is
    unknown. Do nothing for a runtime that toolkit's developers have not tested (``MEASURED`` is false).
    """
    found = case.host.runtime
    name = found.name if found is not None and found.seen and not found.version else ""
    if name and runtime_of(case.host_facts).MEASURED and runtime.depends_on_release(name):
        raise Undecided("host.runtime.version")


@rule(
    "runtime-cannot-read-image",
    "The host's container runtime cannot read this kind of image",
    severity="error",
    fix=(
        "build a native SIF (`apptainer build`, without `--oci`); or ask the administrators to install "
        "Apptainer"
    ),
    source="recipes/knowledge/runtime.toml, [[unreadable]]",
    facts=("host.runtime", "image.format", "host.runtime.version"),
)
def runtime_cannot_read_image(case: Case) -> Hit | None:
    """Apptainer, and Singularity 3 and later, read SIF files. Only SingularityCE 4 reads OCI-SIF files. Other
    runtimes fail on an OCI-SIF with 'image format not recognized'.
    """
    case.have("host.runtime")
    found = case.host.runtime
    if any(row.versions and case.image.format in row.formats for row in runtime.runtime().unreadable):
        ask_release(case)
    row = runtime.why_unreadable(found.name, found.version, case.image.format) if found else None
    if row is None:
        return None
    evidence = (*case.cite("host.runtime"), f"image: its format is {case.image.format}")
    return Hit(evidence, "unavailable", row.because, source=row.source)


@rule(
    "runtime-not-measured",
    "toolkit's developers have not tested this container runtime",
    severity="warning",
    fix="before you submit, check the container command in the output of `toolkit launch --dry-run`",
    source="the runtime's documentation (pages: docstring of the runtime's module in toolkit/runtime)",
    facts=("host.runtime",),
    advice=True,
)
def runtime_not_measured(case: Case) -> Hit | None:
    """toolkit's developers read in the runtime's documentation how it starts a container, and which
    namespaces, variables and folders the ranks share. No test launch confirms the documentation.
    """
    case.have("host.runtime")
    if runtime_of(case.host_facts).MEASURED:
        return None
    return Hit(case.cite("host.runtime"))


@rule(
    "oci-mode",
    "SingularityCE's OCI mode separates each rank's container from the host and from other ranks",
    severity="error",
    fix=f"build a native SIF (`singularity build`, without `--oci`); or {TRY_IT}",
    source=(
        "sylabs/singularity:internal/pkg/runtime/launcher at v4.3.7: oci/spec_linux.go, addNamespaces; "
        "oci/mounts_linux.go; native/launcher_linux.go, checkImage"
    ),
    facts=("host.runtime", "host.runtime.version"),
)
def oci_mode(case: Case) -> Hit | None:
    """In the OCI mode of SingularityCE 4, each rank has separate process, IPC and user namespaces. Without
    --no-compat, the container also has its own /tmp, /dev/shm and environment. toolkit's developers have not
    tested MPI in OCI mode. If a container lacks the launcher's variables, its rank is a world of size 1.
    Without OCI mode, an OCI-SIF fails: 'native runtime does not support OCI-SIF images, use --oci mode'.
    """
    asked = setting(case, "oci mode") == "yes" and "--no-oci" not in case.plan.container
    if asked:
        ask_release(case)
    found = in_oci_mode(case)
    if not found and case.image.format == "oci-sif" and has_option(case.host, "--no-oci"):
        evidence = (*case.cite("host.runtime"), "image: its format is oci-sif")
        because = "an OCI-SIF starts only with --oci"
        return Hit(evidence, "unavailable", because, "An OCI-SIF starts only with --oci", fix="add `--oci`")
    if not found or (clearing_options(case) and case.mode != "mpirun-container"):
        return None
    because = "toolkit's developers have not tested MPI in SingularityCE's OCI mode"
    return Hit((*case.cite("host.runtime"), found), "unknown", because)


@rule(
    "image-kind-forbidden",
    "The administrators forbid images of this kind",
    severity="error",
    fix=(
        "convert the image to an allowed kind: `apptainer build [--sandbox] TARGET IMAGE`; or ask the "
        "administrators to remove the line 'allow container …' from apptainer.conf"
    ),
    source="recipes/knowledge/runtime.toml, [[forbidden]]",
    facts=("host.runtime", "image.format"),
)
def image_kind_forbidden(case: Case) -> Hit | None:
    """Administrators can forbid sandbox folders, bare squashfs files or SIF files without encryption. With
    a forbidden image, the runtime fails: 'configuration disallows users from running sandbox containers'.
    """
    case.have("host.runtime")
    rows = (row for row in runtime.runtime().forbidden if row.format == case.image.format)
    row = next((row for row in rows if setting(case, row.setting) == "no"), None)
    if row is None:
        return None
    because = f"'{row.setting} = no' forbids images of format {row.format}"
    evidence = (_line(case, row.setting), f"image: its format is {row.format}")
    return Hit(evidence, "unavailable", because, source=row.source)


@rule(
    "images-limited",
    "The administrators allow only images in certain folders or of certain owners",
    severity="warning",
    fix=(
        "ask the administrators which folders and owners the settings 'limit container …' in apptainer.conf "
        "allow, and copy the image to an allowed folder"
    ),
    source=(
        "apptainer/apptainer:internal/pkg/runtime/engine/apptainer/prepare_linux.go, loadImage, at "
        "v1.4.5; sylabs/singularity: the same function at v4.3.7"
    ),
    facts=("host.runtime",),
    advice=True,
)
def images_limited(case: Case) -> Hit | None:
    """The runtime refuses an image if the administrators do not allow its folder or its owner: 'image is not
    in an allowed configured path', 'image is not owned by required user(s)'. toolkit does not know which
    folders and owners the administrators allow.
    """
    case.ask("host.runtime")
    names = ("limit container paths", "limit container owners", "limit container groups")
    found = tuple(_line(case, name) for name in names if setting(case, name))
    return Hit(found) if found else None


@rule(
    "bind-source-missing",
    "The runtime's settings bind a path that the host does not have",
    severity="error",
    fix=(
        "ask the administrators to create the path on every node, or to remove this path's line "
        "'bind path = …' from the runtime's settings"
    ),
    source=(
        "apptainer/apptainer:internal/pkg/runtime/engine/apptainer/container_linux.go, mountGeneric; "
        "measured: without /etc/localtime on the node, Apptainer 1.4.5 needs --no-mount /etc/localtime"
    ),
    facts=("host.runtime",),
)
def bind_source_missing(case: Case) -> Hit | None:
    """If the source of a 'bind path' in the runtime's settings is missing, every container fails with 'mount
    source … doesn't exist'. The default settings bind /etc/localtime, which a minimal system may not have.
    Apptainer 1.1 or later and SingularityCE 3.10 or later can skip a single bind with --no-mount PATH. This
    rule does not check binds that you add with --bind.
    """
    case.have("host.runtime")
    found = case.host.runtime
    if found is None or not found.unbound:
        return None
    words = case.plan.container
    left_out = {t for word, given in pairwise(words) if word == "--no-mount" for t in given.split(",")}
    ends = [bind for bind in found.unbound if bind_target(bind) not in left_out]
    evidence = tuple(f"host: {found.name}.conf: bind path = {bind}: missing" for bind in found.unbound)
    if not ends:
        return Hit((*evidence, f"plan: {' '.join(words)}"), severity="warning")
    because = (
        f"{found.name} binds {ends[0].partition(':')[0]} into every container, but the host does not "
        "have this path"
    )
    return Hit(evidence, "unavailable", because)


@rule(
    "runtime-retired",
    "The host's release of the container runtime is no longer maintained",
    severity="info",
    fix="ask the administrators to install a maintained release",
    source="recipes/knowledge/runtime.toml, [[retired]]",
    facts=("host.runtime", "host.runtime.version"),
    advice=True,
)
def runtime_retired(case: Case) -> Hit | None:
    """A release without maintenance gets no fixes, not even for security faults. An old release also lacks
    later options: --env (Singularity 3.6), --no-mount (3.7), --mount (3.9), --sharens (Apptainer 1.3).
    """
    case.ask("host.runtime")
    ask_release(case)
    found = case.host.runtime
    row = runtime.successor_of(found.name, found.version) if found else None
    if found is None or row is None:
        return None
    title = f"{found.name} {found.version} is no longer maintained; {row.successor} replaces it"
    return Hit(case.cite("host.runtime"), title=title, source=row.source)


@rule(
    "runtime-vulnerable",
    "The host's release of the container runtime has a published security fault",
    severity="info",
    fix="ask the administrators to install a release without the fault",
    source="recipes/knowledge/runtime.toml, [[vulnerable]]",
    facts=("host.runtime", "host.runtime.version"),
    advice=True,
)
def runtime_vulnerable(case: Case) -> Hit | None:
    """The fault does not change how ranks start. Some faults affect only setuid installations, or only
    installations with a certain setting. The CVE's advisory says who can exploit the fault.
    """
    case.ask("host.runtime")
    ask_release(case)
    found = case.host.runtime
    if found is None:
        return None
    rows = [
        r
        for r in runtime.vulnerabilities_of(found.name, found.version)
        if not r.setting or r.setting in found.settings
    ]
    row = next((r for r in rows if found.setuid or not r.setuid), None)
    if row is None:
        return None
    title = f"{found.name} {found.version} has {row.cve}, fixed in {row.fixed}: {row.because}"
    evidence = (*case.cite("host.runtime"), *([_line(case, row.setting)] if row.setting else []))
    return Hit(evidence, title=title, source=row.source)


def setting(case: Case, name: str) -> str:
    return case.host.runtime.settings.get(name, "") if case.host.runtime else ""


def _line(case: Case, name: str) -> str:
    found = case.host.runtime
    return f"host: {found.name if found else 'apptainer'}.conf: {name} = {setting(case, name)}"


@rule(
    "home-not-mounted",
    "The runtime does not mount the home folder into containers",
    severity="info",
    fix=(
        "bind each folder that the program needs from your home folder: `--bind FOLDER`; `toolkit launch` "
        "already binds the folders of the job and the data"
    ),
    source="Apptainer administrator guide, apptainer.conf: mount home",
    facts=("host.runtime",),
    advice=True,
)
def home_not_mounted(case: Case) -> Hit | None:
    """Programs in the container cannot read the files in your home folder. Programs also cannot write caches
    to the path of the home folder, because without the mount, this path is a folder of the read-only image.
    """
    if setting(case, "mount home") != "no":
        return None
    return Hit((_line(case, "mount home"),))


@rule(
    "binds-refused",
    "The administrators do not let users bind folders into containers",
    severity="warning",
    fix=(
        "use only folders that the site binds into every container; or ask the administrators to set "
        "'user bind control = yes' in apptainer.conf"
    ),
    source="Apptainer administrator guide, apptainer.conf: user bind control",
    facts=("host.runtime",),
    advice=True,
)
def binds_refused(case: Case) -> Hit | None:
    """With 'user bind control = no', the runtime prints a warning and skips every --bind. Programs in the
    container then do not find the folders that these options name.
    """
    if setting(case, "user bind control") != "no":
        return None
    binds = tuple(f"plan: --bind {bind}" for bind in case.plan.binds)
    return Hit((_line(case, "user bind control"), *binds))


@rule(
    "binds-need-folders",
    "The runtime can bind only to folders that exist in the image",
    severity="info",
    fix=(
        "bind to a folder that is in the image, such as /mnt: `--bind SOURCE:/mnt`; or create the folder in "
        "the image's recipe"
    ),
    source="Apptainer administrator guide, apptainer.conf: enable overlay, enable underlay",
    facts=("host.runtime",),
    advice=True,
)
def binds_need_folders(case: Case) -> Hit | None:
    """The runtime needs an overlay or an underlay to create missing mount points, but its settings allow
    neither. A bind to a folder that the image lacks fails with "destination … doesn't exist in container".
    """
    if (setting(case, "enable overlay"), setting(case, "enable underlay")) != ("no", "no"):
        return None
    return Hit((_line(case, "enable overlay"), _line(case, "enable underlay")))


@rule(
    "bind-not-allowed",
    "The administrators forbid mounting the host's MPI into a container",
    severity="error",
    fix=(
        "ask the administrators to set 'user bind control = yes' and 'enable underlay = yes' in "
        "apptainer.conf"
    ),
    instead=MPI_MODES,
    source=(
        "apptainer/apptainer:internal/pkg/runtime/engine/apptainer/container_linux.go, addUserbindsMount and "
        "mountGeneric, at v1.4.5; sylabs/singularity: the same at v3.8.4 and v4.3.7"
    ),
    facts=("host.mpis", "host.runtime"),
    modes=("bind",),
)
def bind_not_allowed(case: Case) -> Hit | None:
    """With 'user bind control = no', the runtime prints a warning and skips every --bind. Without the bind
    of the host's MPI, programs load the image's MPI, but with variables that configure the host's MPI.
    Without overlay and underlay, the launch fails if the image lacks the destination folder of a bind:
    "destination … doesn't exist in container".
    """
    case.ask("host.mpis", "host.runtime")
    folders = mounted_folders(provider_guarded(case))
    if not folders or not case.plan.binds:
        return None
    if setting(case, "user bind control") == "no":
        because = "with 'user bind control = no', the runtime does not mount the host's MPI"
        return Hit((_line(case, "user bind control"),), "unavailable", because)
    if (setting(case, "enable overlay"), setting(case, "enable underlay")) != ("no", "no"):
        return None
    because = (
        "a bind needs a folder in the image, and toolkit does not know whether the image has "
        f"{', '.join(folders)}"
    )
    evidence = (_line(case, "enable overlay"), _line(case, "enable underlay"))
    return Hit(evidence, "unknown", because)


@rule(
    "device-files-hidden",
    "Containers have a minimal /dev, without InfiniBand, RoCE and the host's shared memory",
    severity="warning",
    fix=(
        "if apptainer.conf has 'mount dev = minimal', add `--bind /dev`; or ask the administrators to set "
        "'mount dev = yes' in apptainer.conf"
    ),
    source=(
        "Apptainer administrator guide, apptainer.conf: mount dev; apptainer/apptainer:internal/pkg/runtime/"
        "engine/apptainer/container_linux.go, addUserbindsMount, at v1.4.5"
    ),
    facts=("host.runtime",),
    advice=True,
)
def device_files_hidden(case: Case) -> Hit | None:
    """With 'mount dev = minimal' or 'no', the container has neither /dev/infiniband nor the host's /dev/shm.
    Without /dev/infiniband and the host's /dev/shm, Open MPI and NCCL use TCP, even within a node. A bind
    of the complete /dev works with 'mount dev = minimal', but not with 'mount dev = no'. The runtime skips a
    bind of only /dev/shm, because the container already has a /dev/shm.
    """
    found = setting(case, "mount dev")
    if found not in {"minimal", "no"} or (found == "minimal" and binds_devices(case)):
        return None
    return Hit((_line(case, "mount dev"),))


@rule(
    "session-folder-small",
    "The tmpfs that a container can write to is too small for large files",
    severity="info",
    fix=(
        "write large files to a folder that you bind into the container; or ask the administrators to "
        "increase 'sessiondir max size' in apptainer.conf"
    ),
    source="recipes/knowledge/runtime.toml, session",
    facts=("host.runtime",),
    advice=True,
)
def session_folder_small(case: Case) -> Hit | None:
    """With --writable-tmpfs, programs write into a tmpfs. Its size in MiB is the setting 'sessiondir max
    size'. When the tmpfs is full, a write fails with 'No space left on device'.
    """
    size = setting(case, "sessiondir max size")
    if not size.isdecimal() or int(size) >= runtime.runtime().session.small:
        return None
    return Hit((_line(case, "sessiondir max size"),))
