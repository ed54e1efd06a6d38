"""Test that each error number has the meaning in the documentation of its system or library."""

import errno
import os
import signal

from tests.unit.tables import every_row
from toolkit.engine.logs.codes import code_in
from toolkit.knowledge.signatures import families

DOCUMENTED = {
    "cuda": "1 2 3 4 34 35 36 46 98 100 101 200 201 209 214 217 218 220 222 226 302 303 304 400 700 701 "
    "702 704 710 714 715 716 719 800 801 802 803 804 805 910 999",
    "cuda-old": "2 8 10 30 35 38 39 46 48 59 77",
    "hip": "2 98 100 101 209 214 700 710 719",
    "nccl": "1 2 3 4 5 6 7",
    "grpc": "4 7 8 9 12 14 15",
    "xid": "8 13 31 32 38 43 45 48 61 62 63 64 68 69 74 79 92 94 95 109 119 120 121 140 143 144 145 146 147 "
    "148 149 150",
    "exit": "124 125 126 127",
}
"""The error numbers of each family, from the documentation that its row names as the source."""


def test_a_system_error_has_the_number_and_text_of_this_system():
    for code in families()["errno"].code:
        assert [errno.errorcode[code.number]] == list(code.names)[:1]
        assert code.text == os.strerror(code.number)


def test_a_signal_has_the_number_of_this_system():
    for code in families()["signal"].code:
        assert signal.Signals(code.number).name == code.names[0]


@every_row("family", sorted(DOCUMENTED))
def test_a_family_has_the_numbers_of_its_documentation(family: str):
    numbers = sorted(code.number for code in families()[family].code)
    assert numbers == [int(word) for word in DOCUMENTED[family].split()]


def test_no_family_with_numbers_is_left_out():
    numbered = {name for name, family in families().items() if any(c.number for c in family.code)}
    assert numbered == {*DOCUMENTED, "errno", "signal"}


GENERAL = {
    "errno": "1 2 11 13 16 17 18 32 98 104 107 110 111 113",
    "cuda": "1 2 3 4 714 716 800 801 999",
}
"""Codes whose text does not identify them: other systems print it, or other rows of faultlines.toml explain
it.
"""


def test_a_text_tells_its_code_unless_it_is_general():
    for name, general in GENERAL.items():
        texts = [code for code in families()[name].code if code.text and not code.telling]
        assert [code.number for code in texts] == [int(word) for word in general.split()]


def test_a_telling_text_alone_in_a_line_names_its_code():
    for name, family in families().items():
        for code in (code for code in family.code if code.telling):
            assert code_in(f"error: {code.text}", name) == code


LINES = {
    "errno": ("[Errno {}]", "errno = {}"),
    "cuda": ("CUDA error {}", "cudaError({})"),
    "cuda-old": ("cuda runtime error ({})",),
    "hip": ("HIP error {}",),
    "xid": (
        "NVRM: Xid (PCI:0000:01:00): {}",
        "caused by previous Xid {}",
        "Xid error: {}",
        "NVRM: Xid (PCI:0000:01:00): 45, caused by previous Xid {}",
    ),
    "signal": ("exitcode : -{}", "signal {}", "exit code -{}", "signal 15, exitcode : -{}"),
    "exit": ("exited with exit code {}",),
}
"""Lines in which programs print an error number; ``{}`` stands for the number."""


@every_row("family", sorted(LINES))
def test_a_number_in_a_line_names_its_code(family: str):
    for code in families()[family].code:
        for line in LINES[family]:
            assert code_in(line.format(code.number), family) == code, line
