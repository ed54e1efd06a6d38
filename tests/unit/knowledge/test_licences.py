"""Test the SPDX expression that combines the licences of a stack."""

import tomllib
from pathlib import Path

from license_expression import get_spdx_licensing

from toolkit.knowledge.licences import OWN_LICENCE, expression, licences, terms

ROOT = Path(__file__).parents[3]


def of(versions: dict[str, str]) -> str:
    return expression(terms(versions).values())


def test_the_expression_names_toolkit_first_and_each_licence_once() -> None:
    found = of({"tensorflow": "2.15.1", "openmpi": "4.1.4", "pmix": "4.2.2", "mpi4py": "3.1.5"})
    assert found == "Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause-Open-MPI"


def test_a_licence_without_an_identifier_is_a_reference() -> None:
    assert of({"cuda": "12.2"}) == (
        "Apache-2.0 AND LicenseRef-NVIDIA-CUDA-Toolkit-End-User-License-Agreement"
    )


def test_a_component_without_a_row_is_left_out() -> None:
    assert of({"base": "debian:bookworm"}) == OWN_LICENCE


def test_every_row_gives_a_valid_expression() -> None:
    spdx = get_spdx_licensing()
    wrong = {}
    for component in licences():
        parsed = spdx.validate(of({component: "1.0"}))
        unknown = [symbol for symbol in parsed.invalid_symbols if not symbol.startswith("LicenseRef-")]
        if unknown:
            wrong[component] = unknown
    assert not wrong


def test_the_metadata_and_the_text_are_of_the_same_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "LICENSE").read_text()
    assert project["license"] == OWN_LICENCE
    assert project["license-files"] == ["LICENSE"]
    assert text.split()[:2] == ["Apache", "License"]
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
