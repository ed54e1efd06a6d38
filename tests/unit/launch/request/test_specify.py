"""Test the name that a job gets from its command."""

from tests.unit.tables import every_row
from toolkit.launch.request.specify import name_of
from toolkit.model.jobfile import JobFile


@every_row(
    ("line", "name"),
    [
        ("python train.py --lr 0.1", "train"),
        ("torchrun --nnodes=2 src/fit.v2.py", "fit.v2"),
        ("accelerate launch --config_file conf.yaml fit.py eval.py", "fit"),
        ("bash run.sh train.py", "run"),
        ("python3.11 -m pkg.train", "python3.11"),
        ("sh -c date", "sh"),
        ("/opt/app/solver in.py", "solver"),
        ("./my+run.sh", "my+run.sh"),
        ("hostname", "hostname"),
    ],
)
def test_a_job_is_named_after_its_script_or_its_program(line, name):
    assert name_of(JobFile(command=tuple(line.split()))) == name
    assert name_of(JobFile(command=tuple(line.split()), name="mine")) == "mine"
