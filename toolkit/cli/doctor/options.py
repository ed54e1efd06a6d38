"""The options of ``toolkit doctor``, and a check of their combinations."""

from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.job.places import HostOptions
from toolkit.model.prediction import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """The values of the options of ``toolkit doctor``. ``program`` is the command that each rank runs, given
    after ``--``.
    """

    image: str | None
    host: str | None
    cluster: str | None
    ssh_config: Path | None
    facts: Path | None
    site: str | None
    job_file: str | None
    env_image: str | None
    runtime: str | None
    nodes: int | None
    ranks_per_node: int | None
    modes: tuple[Mode, ...]
    live: bool
    no_run: bool
    partition: str | None
    account: str | None
    verify_key: str | None
    no_verify: bool
    fix: bool
    output: Path | None
    ask: bool
    everything: bool
    as_json: bool
    rules: bool
    page: str | None
    program: tuple[str, ...] = ()

    @property
    def host_options(self) -> HostOptions:
        """The host to probe."""
        return HostOptions(self.host, self.cluster, self.ssh_config)

    @property
    def mode(self) -> Mode | None:
        """The launch mode to predict, or ``None`` for all modes."""
        return self.modes[0] if self.modes else None

    @property
    def place_words(self) -> tuple[str, ...]:
        """The options with which other commands connect to the cluster.

        With a facts file, the host is unknown and the options contain the placeholder ``LOGIN_NODE``.
        """
        host = "LOGIN_NODE" if self.facts else self.host
        words = ["--host", host] if host else ["--cluster", self.cluster] if self.cluster else []
        words += ["--ssh-config", str(self.ssh_config)] if self.ssh_config else []
        words += ["--partition", self.partition] if self.partition else []
        return tuple(words)

    @property
    def facts_words(self) -> tuple[str, ...]:
        """The options with which a later ``toolkit doctor`` reads the same facts about the cluster."""
        return ("--facts", str(self.facts)) if self.facts else self.place_words


def check_combination(options: DoctorOptions) -> None:
    """Check that the given options can be combined, and that no required option or IMAGE is missing.

    Raises:
        BadInput: if two options conflict, if an option needs IMAGE but IMAGE is missing, or if an option
            needs another option but the other option is missing. The message names the options.
    """
    if options.ask:
        if options.image is not None or options.fix or options.live:
            raise BadInput("--ask: cannot be combined with IMAGE, --fix or --live")
        return
    _check_image(options)
    _check_live(options)
    _check_output(options)
    _check_facts(options)


def _check_image(options: DoctorOptions) -> None:
    """Raise ``BadInput`` if IMAGE is missing and an option needs IMAGE."""
    if options.image is not None:
        return
    if options.site or options.job_file:
        raise BadInput("--site and --job need an IMAGE")
    if options.live or options.fix:
        raise BadInput("--live and --fix need an IMAGE")
    if options.env_image is not None:
        raise BadInput("--env-image: needs an IMAGE")


def _check_live(options: DoctorOptions) -> None:
    """Raise ``BadInput`` if an option conflicts with ``--live``, or has no effect without ``--live``."""
    if options.live:
        if options.site or options.job_file:
            raise BadInput("--site and --job: cannot be combined with --live")
        if options.fix:
            raise BadInput("--live and --fix: cannot be combined; give one of them")
        if options.facts is not None:
            raise BadInput(
                "--live and --facts: cannot be combined, because --live runs a job on the cluster itself"
            )
        if options.env_image is not None:
            raise BadInput("--env-image: cannot be combined with --live")
        return
    if len(set(options.modes)) > 1:
        raise BadInput("--mode: more than one mode is possible only with --live")
    if options.account is not None:
        raise BadInput(
            f"--account {options.account}: possible only with --live, which submits a job",
            fix="leave out `--account`, or add `--live`",
        )
    if options.verify_key is not None or options.no_verify:
        raise BadInput("--verify-key and --no-verify: possible only with --live, which starts the image")


def _check_output(options: DoctorOptions) -> None:
    """Raise ``BadInput`` if ``--output`` is given without ``--fix``."""
    if options.output is not None and not options.fix:
        raise BadInput("-o: possible only with --fix, which writes a file")


def _check_facts(options: DoctorOptions) -> None:
    """Raise ``BadInput`` if ``--facts`` is given with an option that applies only to a probe, such as
    ``--host``.
    """
    if options.facts is None:
        return
    if options.partition is not None:
        raise BadInput(
            f"--partition {options.partition}: cannot be combined with --facts, "
            "because the facts file already describes the nodes",
            fix=f"probe the partition: `toolkit probe --partition {options.partition} -o {options.facts}`",
        )
    if options.host_options.remote or options.ssh_config is not None:
        raise BadInput("--facts: cannot be combined with --host, --cluster or --ssh-config")
