"""Test queries of the package index through uv, which needs a cache folder."""

import pytest

from toolkit.errors import Missing
from toolkit.run.packages import wheels


def test_a_cache_that_takes_no_files_is_no_fault_of_the_package_index(monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", "/proc/cache")
    with pytest.raises(Missing, match=r"^the cache folder /proc/cache/uv cannot be written"):
        wheels.lock_all_files(["click==8.1.7"], python="3.11")


def test_the_index_of_pips_configuration_file_is_the_default(monkeypatch, tmp_path):
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    assert wheels.uv_settings()["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
