"""Test the output of an image build: toolkit reports the steps, and the step and last lines of a failure."""

import pytest

from tests.unit.heard import Heard
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.run.docker.buildlog import BuildLog


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def log(heard):
    return BuildLog("an image", heard, 4 << 30)


def begin(log, instruction="RUN make all"):
    log.take({"stream": f"Step 3/9 : {instruction}"})


def test_slow_steps_are_told_and_quick_ones_only_noted(log, heard):
    begin(log)
    begin(log, "LABEL a=b")
    assert heard.steps == ["an image, step 3 of 9: RUN make all"]
    assert heard.details == ["an image, step 3 of 9: LABEL a=b"]


def test_a_long_instruction_is_shortened_to_one_line(log, heard):
    begin(log, "RUN a \t  &&" + "b" * 200)
    (said,) = heard.steps
    assert said.endswith("…")
    assert len(said) < 120


def test_lines_come_without_colours_and_the_builders_own_noise(log, heard):
    begin(log)
    for text in ("\x1b[91mhot\x1b[0m\n", " ---> Running in 0123456789ab\n", " ---> 0123456789ab\n", "\n"):
        log.take({"stream": text})
    log.take({"stream": "Removing intermediate container 0123456789ab\n"})
    assert heard.details == ["hot"]
    assert log.container == "0123456789ab"


def test_the_image_is_the_one_that_the_stream_names_last(log):
    log.take({"aux": {"ID": "sha256:a"}})
    log.take({"aux": {"ID": "sha256:b"}})
    log.take({"status": "pulling"})
    assert log.image == "sha256:b"


def failure(log, message):
    with pytest.raises(CheckFailed) as caught:
        log.take({"error": message, "errorDetail": {"message": message}})
    return caught.value


@every_row(
    "fault",
    [
        "/build/work/horovod/torch/adapter_v2.cc:12:10: error: 'THC' has not been declared",
        "/build/work/horovod/common.h:4:10: fatal error: stdexcept: No such file or directory",
        "kernels.cu(31): error: identifier is undefined",
        "CMake Error at CMakeLists.txt:4 (find_package):",
        "ready_event.cc:(.text+0x1f): undefined reference to `cudaEventCreate'",
    ],
)
def test_the_first_fault_that_a_compiler_names_stands_before_the_last_lines(log, fault):
    begin(log, "RUN earlier")
    log.take({"stream": "a.cc:1:1: error: of the earlier step\n"})
    begin(log)
    log.take({"stream": f"   {fault}\n"})
    for number in range(40):
        log.take({"stream": f"0 errors in line {number}\n"})
    error = failure(log, "The command '/bin/sh -c make all' returned a non-zero code: 2")
    assert error.detail[0] == fault
    assert error.detail[1] == "0 errors in line 25"
    assert len(error.detail) == 16


def test_a_compiler_that_was_killed_pages_before_the_end_is_the_reason(log):
    begin(log)
    log.take({"stream": "g++: fatal error: Killed signal terminated program cc1plus\n"})
    for number in range(40):
        log.take({"stream": f"line {number}\n"})
    error = failure(log, "The command '/bin/sh -c make' returned a non-zero code: 1")
    assert "most likely by the memory limit of 4096 MiB" in error.message
    assert "TOOLKIT_BUILD_MEMORY" in error.fix


def test_a_fault_among_the_last_lines_is_shown_once(log):
    begin(log)
    log.take({"stream": "a.cc:1:1: error: wrong\n"})
    assert failure(log, "returned a non-zero code: 1").detail == ("a.cc:1:1: error: wrong",)


def test_a_failed_step_is_named_with_its_last_lines(log):
    begin(log, "RUN earlier")
    log.take({"stream": "of the earlier step\n"})
    begin(log)
    for number in range(40):
        log.take({"stream": f"line {number}\n"})
    error = failure(log, "The command '/bin/sh -c make all' returned a non-zero code: 2")
    assert (
        error.message
        == "an image: the build failed in step 3 of 9 (RUN make all): the command exited with status 2"
    )
    assert error.detail[-1] == "line 39"
    assert len(error.detail) == 15
    assert error.fix


def test_a_killed_compiler_is_told_as_too_little_memory(log):
    begin(log)
    log.take({"stream": "gcc: fatal error: Killed signal terminated program cc1\n"})
    error = failure(log, "The command returned a non-zero code: 1")
    assert "memory limit of 4096 MiB" in error.message
    assert "TOOLKIT_BUILD_MEMORY" in error.fix


def test_a_full_disk_is_told_as_such(log):
    begin(log)
    log.take({"stream": "cp: write error: No space left on device\n"})
    assert "the disk of the Docker engine is full" in failure(log, "returned a non-zero code: 1").message


def test_a_refusal_before_the_first_step_is_passed_on(log):
    assert failure(log, "pull access denied for x").message == (
        "an image: the build failed before the first step: pull access denied for x"
    )
