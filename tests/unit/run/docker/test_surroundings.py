"""Test which settings of this machine an image build uses, for example proxies."""

from toolkit.run.docker.surroundings import certificates, pip_settings, proxies


def test_the_first_bundle_that_is_there_is_taken(tmp_path):
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(b"PEM")
    env = {"PIP_CERT": str(tmp_path / "gone"), "SSL_CERT_FILE": "", "REQUESTS_CA_BUNDLE": str(bundle)}
    assert certificates(env, ()) == b"PEM"
    assert certificates({}, ()) is None


def test_without_a_variable_the_bundle_of_the_system_is_taken(tmp_path):
    bundle, own = tmp_path / "system.crt", tmp_path / "own.crt"
    bundle.write_bytes(b"SYSTEM")
    own.write_bytes(b"OWN")
    system = (str(tmp_path / "gone"), str(bundle))
    assert certificates({}, system) == b"SYSTEM"
    assert certificates({"SSL_CERT_FILE": str(own)}, system) == b"OWN"


def test_settings_of_pip_are_taken_only_where_a_build_understands_them():
    env = {"PIP_INDEX_URL": "https://x.invalid", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "/opt/wheels"}
    assert pip_settings(env) == {"PIP_INDEX_URL": "https://x.invalid"}
    assert pip_settings({"PIP_FIND_LINKS": "https://x.invalid/w"}) == {
        "PIP_FIND_LINKS": "https://x.invalid/w"
    }


def test_proxies_are_taken_in_the_spelling_that_they_have():
    assert proxies({"https_proxy": "a", "NO_PROXY": "b", "http_proxy": ""}) == {
        "https_proxy": "a",
        "NO_PROXY": "b",
    }
