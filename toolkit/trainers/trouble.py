"""What ends a trainer with one line instead of a traceback."""


class Trouble(Exception):
    """Something that a person can mend; ``code`` as everywhere: 1 it failed, 2 wrong call, 3 missing."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
