from hypothesis import given
from hypothesis import strategies as st

from toolkit.run.registry.challenge import Challenge, read_challenges


def test_what_registries_send():
    header = 'Bearer realm="https://auth.example/token",service="a, \\"b\\"",scope="repository:x:pull,push"'
    (found,) = read_challenges(header)
    assert found == Challenge(
        "bearer",
        {"realm": "https://auth.example/token", "service": 'a, "b"', "scope": "repository:x:pull,push"},
    )
    assert read_challenges('Basic realm="test"') == (Challenge("basic", {"realm": "test"}),)


def test_several_in_one_header():
    assert [c.scheme for c in read_challenges('Negotiate, NTLM abc=, Basic realm=x, Bearer realm="y"')] == [
        "negotiate",
        "ntlm",
        "basic",
        "bearer",
    ]


def test_nothing_and_nonsense():
    assert read_challenges("") == ()
    assert read_challenges('"') == ()
    assert read_challenges('Basic realm="never closed')[0].scheme == "basic"


@given(st.text(alphabet=st.sampled_from('Bearsic =",\\x:/\t'), max_size=200) | st.text(max_size=200))
def test_no_header_surprises(header):
    for challenge in read_challenges(header):
        assert challenge.scheme == challenge.scheme.lower() != ""
