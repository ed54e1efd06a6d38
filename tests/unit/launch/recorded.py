"""A fake runner that gives recorded answers instead of Slurm's, and keeps a job's files in memory."""

from toolkit.run.command import Completed

RUNNING = "JobId=7 JobState=RUNNING Reason=None ExitCode=0:0 NodeList=node[1-2]"
DONE = "JobId=7 JobState=COMPLETED Reason=None ExitCode=0:0 NodeList=node[1-2]"
FAILED = "JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0 NodeList=node[1-2]"
REFUSAL = """sbatch: error: invalid partition specified: gpu
sbatch: error: Batch job submission failed: Invalid partition name specified
"""
UNANSWERED = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n"
GONE = (1, "", "slurm_load_jobs error: Invalid job id specified\n")
AWAY = (1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")


class Recorded:
    """A runner that gives each program's recorded answers in turn, and then repeats the last answer.

    ``answers`` maps a program to its answers. A text is standard output with exit status 0. A tuple is exit
    status, standard output and standard error. The runner raises an answer that is an exception. ``None``
    means that the program exceeds its timeout. A program without answers exits with status 127.

    ``files`` maps paths to contents. ``ran`` lists the words of each command.
    """

    place = "recorded"

    def __init__(self, files=None, **answers):
        self.answers = {name: list(texts) for name, texts in answers.items()}
        self.files = dict(files or {})
        self.ran = []

    def run(self, command):
        self.ran.append(command.words)
        left = self.answers.get(command.words[0], [(127, "", "not found")])
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            return Completed(command, -1, b"", b"", timed_out=True)
        status, out, err = answer if isinstance(answer, tuple) else (0, answer, "")
        return Completed(command, status, out.encode(), err.encode())

    def write(self, target, content, mode=0o644):
        self.files[target] = content

    def read(self, target, offset=0, limit=None):
        return self.files.get(target, b"")[offset : None if limit is None else offset + limit]

    def size(self, target):
        return len(self.files.get(target, b""))

    def close(self):
        pass
