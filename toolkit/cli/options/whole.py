"""A click type for options whose value is a whole number."""

from typing import Any

import click


class WholeNumber(click.ParamType):  # type: ignore[type-arg] # generic in click 8.2 and later only
    """A whole number within bounds. Help shows ``N`` as the placeholder."""

    name = "whole number"

    def __init__(self, minimum: int = 0, maximum: int | None = None) -> None:
        self._least, self._most = minimum, maximum

    def get_metavar(self, *_: object, **__: object) -> str:  # click 8.2 added an argument
        return "N"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        try:
            number = int(value)
        except ValueError:  # int() also refuses numbers with thousands of digits
            self.fail(f"{value!r}: expected {self._range()}", param, ctx)
        if number < self._least or (self._most is not None and number > self._most):
            self.fail(f"{number}: expected {self._range()}", param, ctx)
        return number

    def _range(self) -> str:
        if self._most is None:
            return f"a whole number of at least {self._least}"
        return f"a whole number from {self._least} to {self._most}"
