"""Find the effect of each setting, such as an environment variable, on the MPI in an image."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

from toolkit.engine import fast_network
from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided, attempt
from toolkit.engine.rule import LaunchStage
from toolkit.engine.settings_in_force import IN_FILE, setting_value, settings_in_force
from toolkit.engine.traits import HYDRA, bind_target
from toolkit.folders import is_below
from toolkit.knowledge import counts
from toolkit.knowledge.mpi import netmods
from toolkit.knowledge.settings import Component, Kind, Setting, settings
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import Outcome
from toolkit.model.stack import ENV_MOUNT
from toolkit.versions import within

_WHATEVER = {"harmless", "tuning", "path", "any"}
"""Kinds of settings that toolkit can judge even if the probe reports only their names."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one setting.

    ``origin`` says who or what sets the setting. ``stage`` is the launch stage in which the setting stops a
    rank. ``first`` is true if the rank then fails before it looks for its launcher. ``measured`` is false if
    toolkit's developers have not measured how the setting changes the messages between ranks.
    """

    name: str
    value: str
    origin: str
    outcome: Outcome
    because: str = ""
    source: str = ""
    stage: LaunchStage | None = None
    first: bool = False
    measured: bool = True

    @property
    def fails(self) -> bool:
        return self.outcome not in {"ok", "unknown"}


def effects(case: Case) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """Return the effect of each setting that reaches the ranks, and the unknown facts on which the effects of
    the remaining settings depend.
    """
    found = [
        _effect_of_file(case, name, value, origin)
        if origin.startswith(IN_FILE)
        else attempt(effect, case, name, value, origin)
        for name, (value, origin) in settings_in_force(case).items()
    ]
    unknown = (name for one in found if isinstance(one, Undecided) for name in one.names)
    return tuple(one for one in found if isinstance(one, Effect)), tuple(dict.fromkeys(unknown))


def _effect_of_file(case: Case, name: str, value: str, origin: str) -> Effect:
    """Return the effect of a setting in a configuration file of the image. Unless toolkit knows that the
    setting makes the launch fail, the effect is ``ok``, because the image's author chose the setting.
    """
    found = attempt(effect, case, name, value, origin)
    known = isinstance(found, Effect) and found.fails
    return found if known and isinstance(found, Effect) else Effect(name, value, origin, "ok")


def fails_before_launcher(case: Case) -> bool:
    """Return whether a setting makes each rank fail before it looks for its launcher."""
    return any(found.first and found.fails for found in effects(case)[0])


def effect(case: Case, name: str, value: str, origin: str) -> Effect:
    """Return the effect of one setting; ``value`` is empty if toolkit knows only the setting's name."""
    mpi, ok = case.image_facts.mpi, Effect(name, value, origin, "ok")
    if name in {"PYTHONPATH", "PYTHONHOME"}:
        return _python(case, ok)
    if mpi is None:
        return ok
    named = [row for row in settings().setting if fnmatchcase(name, row.name)]
    # Use tuning rows only if no other row matches.
    named = [row for row in named if row.kind != "tuning"] or named
    _ask_for(case, named)
    rows = [row for row in named if _counts(case, row)]
    if not value and any(map(_turns_on_value, rows[:1])):
        return replace(ok, outcome="unknown", because=f"{ok.name} is set to an unknown value")
    for row in rows:
        effect = _judge_row(case, mpi, row, ok)
        if effect is not None:
            return effect
    # The image's MPI ignores the variables of other MPI implementations.
    if named and not rows and all(row.implementation or row.speaks for row in named):
        return ok
    pmix = "pmix" in (mpi.interfaces or ())
    if not named and not _of(name, mpi.implementation) and not (pmix and name.startswith("PMIX_")):
        return ok
    return replace(ok, outcome="unknown", because=_unmeasured_effect(ok))


def _turns_on_value(row: Setting) -> bool:
    falls_back = row.kind == "transport" and row.outcome == "ok"
    return row.kind not in _WHATEVER and not falls_back


def _unmeasured_effect(ok: Effect) -> str:
    said = f"{ok.name}={ok.value}" if ok.value else ok.name
    return f"toolkit has not measured the effect of {said}"


def _python(case: Case, ok: Effect) -> Effect:
    """Return the effect of PYTHONPATH or PYTHONHOME. The effect is ``unknown`` if the variable may name a
    mounted folder whose modules toolkit does not know. Otherwise, the effect is ``ok``.
    """
    # Ignore folders whose modules the facts of the image already include.
    known = (ENV_MOUNT, *case.request.projects)
    folders = [f for f in ok.value.split(":") if f and not any(is_below(f, one) for one in known)]
    mounted = [bind.split(":")[0] for bind in case.plan.binds] + ["/tmp", "~"]  # noqa: S108 - default mounts
    seen = not ok.value or any(f.startswith(m) for f in folders for m in mounted)
    because = f"the modules that {ok.name} adds to the container are unknown"
    return replace(ok, outcome="unknown", because=because) if seen else ok


def _of(name: str, implementation: str) -> bool:
    """Return whether an MPI implementation may read a variable that ``settings.toml`` does not list."""
    if name.startswith(("OMPI_MCA_", "OPAL_", "PMIX_MCA_", "PRTE_MCA_", "PMIX_PREFIX", "PRTE_PREFIX")):
        return implementation == "openmpi"
    if name.startswith(("MPIR_", "MPICH_", "HYDRA_")):
        return implementation in HYDRA
    if name.startswith("I_MPI_"):
        return implementation == "intelmpi"
    return not name.startswith("MV2_") or implementation == "mvapich2"


def _ask_for(case: Case, rows: list[Setting]) -> None:
    """Raise ``Undecided`` if toolkit does not know which of these rows of ``settings.toml`` apply."""
    mpi = case.image_facts.mpi
    rows = [r for r in rows if mpi and (not r.implementation or mpi.implementation in r.implementation)]
    if any(row.device for row in rows) and mpi and mpi.device is None:
        raise Undecided("image.mpi.device")
    if any(row.client for row in rows) and "pmix" in ((mpi.interfaces if mpi else None) or ()):
        case.ask("image.pmix")


def _counts(case: Case, row: Setting) -> bool:
    mpi = case.image_facts.mpi
    return mpi is not None and (
        (not row.implementation or mpi.implementation in row.implementation)
        and within(mpi.version or "", row.versions)
        and (not row.device or _device_in_use(case, mpi).startswith(row.device))
        and (not row.client or within(case.image_facts.pmix or "", row.client))
        and (not row.speaks or row.speaks in (mpi.interfaces or ()))
        and (not row.modes or case.mode in row.modes)
        and counts(row.nodes, case.request.nodes)
    )


def _device_in_use(case: Case, mpi: ImageMpi) -> str:
    """Return MPICH's device, such as ``ch4:ucx`` if MPIR_CVAR_CH4_NETMOD selects the module ``ucx``."""
    module = (setting_value(case, "MPIR_CVAR_CH4_NETMOD") or "").lower()
    return f"ch4:{module}" if module in netmods(mpi) else mpi.device or ""


def _judge_row(case: Case, mpi: ImageMpi, row: Setting, ok: Effect) -> Effect | None:
    """Return the effect of a setting's value according to a row of ``settings.toml``. Return ``None`` if the
    row is about other values of the setting.
    """
    value, bad = ok.value, _with_reason(ok, row)
    judges: dict[Kind, Callable[[], Effect | None]] = {
        "harmless": lambda: ok,
        "tuning": lambda: replace(ok, measured=False),
        "value": lambda: bad if value in row.value else None,
        "any": lambda: bad,
        "path": lambda: _path(case, mpi, ok, bad),
        "interfaces": lambda: _interfaces(case, ok, bad),
        "transport": lambda: _transport(case, row, ok, bad),
        "network": lambda: _network(case, row, ok, bad),
        "netmod": lambda: _netmod(mpi, ok, bad),
        "library": lambda: _library(case, row, ok, bad),
        "exclusion": lambda: _exclusion(row, ok, bad),
        "left-out": lambda: _left_out(case, ok, bad),
        "unknown": lambda: replace(ok, outcome="unknown", because=_unmeasured_effect(ok)),
        "devices": lambda: _devices(case, row, ok, bad),
        "components": lambda: _components(case, row, ok, bad),
    }
    return judges[row.kind]()


def _with_reason(ok: Effect, row: Setting | Component) -> Effect:
    because = f"{ok.name}={ok.value}: {row.because}"
    first = isinstance(row, Setting) and row.first
    stage = LaunchStage.START if first else None
    return replace(ok, outcome=row.outcome, because=because, source=row.source, stage=stage, first=first)


def _path(case: Case, mpi: ImageMpi, ok: Effect, bad: Effect) -> Effect:
    """Return ``ok`` if the path in a setting does no harm, otherwise ``bad``. A path does no harm if the
    launch mounts it, if the image's MPI finds its own files through it, or if the MPI loads no plugin files.
    """
    if ok.value.rstrip("/") == mpi.led_by.get(ok.name) or _is_bound(case, ok.value):
        return ok
    of_pmix = ok.name.startswith("PMIX_")
    plugins = case.image_facts.pmix_plugins if of_pmix else mpi.plugins
    if plugins is None:
        raise Undecided("image.pmix_plugins" if of_pmix else "image.mpi.plugins")
    return bad if plugins else ok


def _is_bound(case: Case, folder: str) -> bool:
    return any(is_below(folder, bind_target(bind)) for bind in case.plan.binds)


def _netmod(mpi: ImageMpi, ok: Effect, bad: Effect) -> Effect:
    """Return the effect of a chosen MPICH network module: ``ok`` if the image's MPICH has this module, or has
    only one module.
    """
    there = netmods(mpi)
    if not there:
        raise Undecided("image.mpi.device")
    return ok if len(there) == 1 or ok.value.lower() in there else bad


def _transport(case: Case, row: Setting, ok: Effect, bad: Effect) -> Effect:
    wanted = {word.strip() for word in ok.value.split(",")}
    if ok.value.startswith("^") or wanted & set(row.value):
        return ok
    way = (
        fast_network.judge_ucx(case, ok.value)
        if ok.name == "UCX_TLS"
        else fast_network.judge_libfabric(case, ok.value)
    )
    if not ok.value and way == "open":
        return replace(ok, outcome="unknown", because=f"{ok.name} is set to an unknown value")
    # Without a transport within the node, a rank cannot send messages to itself, so even a single rank fails.
    return _by_way(way, ok, bad if wanted & {"shm", *settings().ucx.near} else _in_init(bad))


def _network(case: Case, row: Setting, ok: Effect, bad: Effect) -> Effect:
    if set(re.split(r"[,:]", ok.value)) & set(row.value):
        return ok
    found = fast_network.networks(case)
    return replace(ok, outcome="unknown", because=_unmeasured_effect(ok)) if found else bad


def _library(case: Case, row: Setting, ok: Effect, bad: Effect) -> Effect | None:
    """Return ``bad`` if the value makes the MPI open a library that the image lacks, otherwise ``None``."""
    named = set(re.split(r"[,:]", ok.value)) & set(row.value)
    there = case.image_facts.libraries
    return bad if named and there is not None and row.library not in there else None


def _by_way(way: fast_network.Way, ok: Effect, bad: Effect) -> Effect:
    if way == "not known":
        because = f"toolkit has not measured whether {ok.name}={ok.value} works on this network"
        return replace(bad, outcome="unknown", because=because)
    return ok if way == "open" else bad


def _exclusion(row: Setting, ok: Effect, bad: Effect) -> Effect | None:
    if not ok.value.startswith("^"):
        return None
    names = {word.strip() for word in ok.value.removeprefix("^").split(",")}
    if not names & set(row.value):
        return ok
    return bad if row.because else None


def _left_out(case: Case, ok: Effect, bad: Effect) -> Effect | None:
    """Return the effect of a list of network interfaces that Open MPI must not use. The effect is ``ok`` if
    the list contains the loopback interface, but leaves Open MPI at least one other interface.
    """
    there = case.host_facts.interfaces
    if there is None:
        raise Undecided("host.interfaces")
    words = {word.strip() for word in ok.value.split(",") if word.strip()}
    if any("/" in word and not word.startswith("127.") for word in words):  # a network such as 10.0.0.0/8
        because = f"toolkit does not know whether the host has an address in {ok.value}"
        return replace(ok, outcome="unknown", because=because)
    without_loopback = "lo" in words or any(word.startswith("127.") for word in words)
    return ok if without_loopback and set(there) - words else bad


def _devices(case: Case, row: Setting, ok: Effect, bad: Effect) -> Effect:
    """Return the effect of a list of UCX devices, such as ``mlx5_0:1`` or ``eth0``."""
    wanted = {word.strip() for word in ok.value.split(",")}
    if wanted & {*row.value, *(case.host_facts.interfaces or ())}:
        return ok
    if case.host_facts.interfaces is None:
        raise Undecided("host.interfaces")
    return _by_way(fast_network.judge_ucx(case, devices=ok.value), ok, bad)


def _in_init(effect: Effect) -> Effect:
    """Return ``effect`` with the stage ``START`` (MPI_Init) if the outcome is ``init-failure``."""
    return replace(effect, stage=LaunchStage.START if effect.outcome == "init-failure" else None)


def _interfaces(case: Case, ok: Effect, bad: Effect) -> Effect:
    there = case.host_facts.interfaces
    if there is None:
        raise Undecided("host.interfaces")
    words = [word.strip() for word in ok.value.split(",") if word.strip()]
    if any("/" in word for word in words):  # a network such as 10.0.0.0/8
        because = f"toolkit does not know whether the host has an address in {ok.value}"
        return replace(ok, outcome="unknown", because=because)
    if any(word in there for word in words):
        return ok
    return replace(bad, outcome="init-failure") if _alone_on_tcp(case, ok) else bad


def _alone_on_tcp(case: Case, ok: Effect) -> bool:
    """Return whether the ranks of a node can reach each other only over TCP. In this case,
    MPI_Init fails if the setting names an interface that the host lacks.
    """
    transports = setting_value(case, "OMPI_MCA_btl") or "^"
    listed = {word.strip() for word in transports.split(",")}
    tcp = ok.name == "OMPI_MCA_btl_tcp_if_include" and not transports.startswith("^")
    return tcp and case.request.ranks_per_node > 1 and not listed & {"vader", "sm"}


def _judge_component(case: Case, component: Component, ok: Effect, bad: Effect) -> Effect:
    """Return the effect of a requested component, which may need a fast network on the host."""
    given = {name: value for name, (value, _) in settings_in_force(case).items()}
    match component.by:
        case "ucx":
            way = fast_network.judge_ucx(case, given.get("UCX_TLS", ""), given.get("UCX_NET_DEVICES", ""))
        case "mtl":
            way = fast_network.judge_mtl(case, given.get("FI_PROVIDER", ""))
        case "openib":
            way = fast_network.judge_openib(case, given.get("OMPI_MCA_btl_openib_allow_ib", ""))
        case _:
            return bad
    return _by_way(way, ok, bad)


def _components(case: Case, row: Setting, ok: Effect, bad: Effect) -> Effect:
    mpi = case.image_facts.mpi
    there = (mpi.components if mpi else {}).get(row.framework)
    if not there:
        raise Undecided("image.mpi.components")
    if bad.outcome == "ok":
        return ok
    names = [word.strip() for word in ok.value.removeprefix("^").split(",") if word.strip()]
    if ok.value.startswith("^"):
        names = [name for name in there if name not in names]
        return _reach(case, row, ok, names)
    if any(name not in there for name in names):
        return _in_init(bad)
    for name in names:
        component = _component(row.framework, name, (mpi.version if mpi else None) or "")
        if component and not _is_excused(case, component):
            judged = _judge_component(case, component, ok, _with_reason(ok, component))
            if judged.outcome != "ok":
                return _in_init(judged)
    return _reach(case, row, ok, names)


def _is_excused(case: Case, component: Component) -> bool:
    """Return whether other settings (``unless``) let a component work without a fast network."""
    given = {name: value for name, (value, _) in settings_in_force(case).items()}
    return bool(component.unless) and component.unless.items() <= given.items()


def _reach(case: Case, row: Setting, ok: Effect, names: list[str]) -> Effect:
    """Return the effect of a setting that enables only some btl transports. Through these transports, each
    rank must reach itself, the other ranks of its node, and the ranks of other nodes.
    """
    if row.framework != "btl":
        return ok
    wanted = [{"self"}]
    if case.request.ranks_per_node > 1:
        wanted.append({"vader", "sm", "tcp"})
    if case.request.nodes > 1:
        wanted.append({"tcp", "openib", "ofi", "uct", "usnic"})
    lacking = next((group for group in wanted if not group & set(names)), None)
    if lacking is None:
        return ok
    missing = " or ".join(sorted(lacking))
    because = f"with {ok.name}={ok.value}, Open MPI lacks a btl that the ranks need; enable {missing}"
    way = fast_network.judge_ucx_layer(case)
    if way == "open":
        return ok
    if way == "not known":
        because = f"{because}; toolkit does not know whether Open MPI uses UCX, which needs no btl"
    outcome: Outcome = "init-failure" if way == "shut" else "unknown"
    return replace(ok, outcome=outcome, because=because, source=row.source)


@cache
def _component(framework: str, name: str, version: str) -> Component | None:
    rows = [r for r in settings().component if (r.framework, r.name) == (framework, name)]
    return next((r for r in rows if within(version, r.versions)), None)
