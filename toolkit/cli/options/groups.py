"""Group the options in the help of a command, with the most common options first."""

from typing import Literal, get_args

import click

from toolkit.cli.dashes import SplitAtDashes
from toolkit.model.jobfile import FIELDS

Group = Literal["Common", "Resources", "Image", "Program", "Slurm", "Advanced"]
"""The names of the groups of options, in the order in which the help shows the groups."""

_NAMES: dict[Group, str] = {
    "Common": """
        ranks over per_node repeat scaling batch epochs image nodes ranks_per_node gpus_per_node time
        partition account name folder packages port keep attach host cluster site dry_run force follow
        patterns study as_json help
    """,
    "Resources": """
        cpus_per_rank gpu memory memory_per_cpu exclusive constraint nodelist exclude licenses
        cpu_bind gpu_bind
    """,
    "Image": "runtime binds env env_file user_site verify_key no_verify",
    "Program": """
        mode program strategy data workdir project sync copies preflight compare pattern unit warm_up
    """,
    "Slurm": """
        qos wckey reservation array sweep sweep_parallel dependency begin mail_type mail_user requeue
        chain elastic min_nodes warning output error modules sbatch
    """,
}
GROUP_OF: dict[str, Group] = {name: group for group, names in _NAMES.items() for name in names.split()}
GROUP_OF |= {field.name: group for field in FIELDS for group in get_args(Group) if field.group == group}


def group_of(option: str) -> Group:
    """Return the group of an option; ``option`` is click's parameter name of the option. An option that is in
    no other group belongs to ``Advanced``, the last group.
    """
    return GROUP_OF.get(option, "Advanced")


class GroupedHelp(click.Command):
    """A click command whose help shows its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        order = list(GROUP_OF)
        found: dict[Group, list[tuple[int, tuple[str, str]]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None or not isinstance(param, click.Option):
                continue
            name = "help" if "--help" in param.opts else param.name or ""
            place = order.index(name) if name in GROUP_OF else len(order)
            found.setdefault(group_of(name), []).append((place, record))
        for group in get_args(Group):
            if rows := sorted(found.get(group, []), key=lambda row: row[0]):
                with formatter.section(group):
                    formatter.write_dl([record for _, record in rows], col_max=26)


class GroupedOptions(GroupedHelp, SplitAtDashes):
    """A click command whose help shows its options in groups, and that stores the words after ``--``."""
