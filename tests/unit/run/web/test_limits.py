"""Test the time and size limits of a transfer with a simulated clock."""

import socket

import pytest

from tests.unit.tables import every_row
from toolkit.run.web.limits import LimitError, Limits, Meter, SlowError, broken_limit, of_transfer


class Trickle:
    def __init__(self, seconds, size=1):
        self.now, self.got, self.seconds, self.size = 0.0, 0, seconds, size
        self.meter = Meter(lambda: self.now)
        self.timeout = None

    def gettimeout(self):
        return self.timeout

    def settimeout(self, seconds):
        self.timeout = seconds

    def receive(self):
        if self.timeout is not None and self.timeout < self.seconds:
            self.now += self.timeout
            raise TimeoutError
        self.now += self.seconds
        self.got += self.size
        return self.size

    def run(self, limits, most=10**9):
        self.meter.begin(limits)
        while self.got < most:
            self.meter.receive(self, self.receive)


def test_a_byte_a_second_ends_after_a_minute():
    line = Trickle(seconds=1)
    with pytest.raises(SlowError, match="the server's answer is not complete after 60 seconds"):
        line.run(Limits())
    assert (line.now, line.got, line.timeout) == (60, 60, None)


def test_a_byte_just_before_each_silence_ends_does_not_help():
    line = Trickle(seconds=59)
    with pytest.raises(SlowError):
        line.run(Limits())
    assert line.now == 60


@every_row(("size", "fast"), [(1023, False), (1025, True)])
def test_a_transfer_is_given_up_by_its_rate_and_not_by_its_duration(size, fast):
    line = Trickle(seconds=1, size=size)
    if fast:
        line.run(of_transfer(10_000_000), most=10_000_000)
        assert line.now > 9000
    else:
        with pytest.raises(SlowError, match="the server sends less than 1024 bytes a second"):
            line.run(of_transfer(10_000_000))
        assert line.now == 60


def test_more_bytes_than_the_limit_are_not_taken():
    line = Trickle(seconds=0, size=1 << 16)
    with pytest.raises(LimitError, match="the server sends more than 16 MiB"):
        line.run(Limits())
    assert line.got == (16 << 20) + (1 << 16)


def test_silence_is_what_the_library_reports_itself():
    line = Trickle(seconds=11)
    with pytest.raises(TimeoutError) as caught:
        line.run(Limits(60, 10))
    assert not isinstance(caught.value, LimitError)


def test_a_limit_is_found_behind_the_errors_of_libraries():
    limit = LimitError("x")
    try:
        try:
            raise limit
        except OSError as error:
            raise ValueError from error
    except ValueError as error:
        assert broken_limit(error) is limit
    assert broken_limit(socket.gaierror()) is None
