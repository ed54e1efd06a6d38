"""The table of commands; help is printed from it, so that ``--help`` imports none of them."""

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("toolkit.cli.init", "Detect this cluster and write its site profile"),
    "image": ("toolkit.cli.image", "Build, convert and look into training images"),
    "env": ("toolkit.cli.env", "Put your packages over an image, as one file"),
    "probe": ("toolkit.cli.probe", "Read the facts of this machine or of a cluster"),
    "doctor": ("toolkit.cli.doctor", "Predict what every way of launching will do"),
    "explain": ("toolkit.cli.explain", "Say what job output means and what mends it"),
    "launch": ("toolkit.cli.launch", "Run a trainer or any command as a Slurm job"),
    "jobs": ("toolkit.cli.jobs", "List, show, follow and cancel launched jobs"),
    "notebook": ("toolkit.cli.notebook", "Open Jupyter in an image on a compute node"),
    "scale": ("toolkit.cli.scale", "Run a training at several sizes and measure it"),
    "report": ("toolkit.cli.report", "Make tables and plots from jobs and studies"),
    "data": ("toolkit.cli.data", "Fetch and verify data sets"),
    "site": ("toolkit.cli.site", "List, show and check the profiles of clusters"),
    "cluster": ("toolkit.cli.cluster", "Run a virtual Slurm cluster in Docker"),
    "completion": ("toolkit.cli.completion", "Print shell completion for bash, zsh or fish"),
}
"""Name → module that holds ``command``, and its help line: a verb first, no full stop, 60 characters."""
