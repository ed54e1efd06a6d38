"""The table of commands. ``--help`` prints the help lines of this table without importing the commands'
modules.
"""

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("toolkit.cli.init", "Probe a cluster and write its site profile"),
    "image": ("toolkit.cli.image", "Build, convert and inspect images"),
    "env": ("toolkit.cli.env", "Write your packages to a file that extends an image"),
    "probe": ("toolkit.cli.probe", "Collect hardware and software facts of a machine or cluster"),
    "doctor": ("toolkit.cli.doctor.command", "Predict whether an image runs on a cluster, and how"),
    "explain": ("toolkit.cli.explain", "Find the cause of a failed job in its output"),
    "adapt": ("toolkit.cli.script.adapt", "Change a training script to run on several ranks"),
    "launch": ("toolkit.cli.launch", "Run a trainer or any command as a Slurm job"),
    "jobs": ("toolkit.cli.jobs", "List, show, follow and cancel launched jobs"),
    "notebook": ("toolkit.cli.notebook", "Open Jupyter in an image on a compute node"),
    "scale": ("toolkit.cli.scale", "Measure the speed of a training at several rank counts"),
    "bench": ("toolkit.cli.bench", "Measure the time from submission to first training batch"),
    "report": ("toolkit.cli.report", "Show the results of a training or a scaling study"),
    "data": ("toolkit.cli.data", "Download and verify data sets"),
    "site": ("toolkit.cli.site", "List, show and check the profiles of clusters"),
    "cluster": ("toolkit.cli.cluster", "Run a virtual Slurm cluster in Docker"),
    "completion": ("toolkit.cli.completion", "Print shell completion for bash, zsh or fish"),
}
"""For each command: the module with the function ``command``, and the help line.

A help line starts with a verb, has no full stop, and has at most 60 characters.
"""
