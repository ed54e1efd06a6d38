"""Check that a file is an SSH configuration, because paramiko accepts any text and even binary data."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.files import read_given
from toolkit.near import suggest_near

_LARGEST = 1 << 20
_LINE = re.compile(r'\s*(?P<keyword>[^\s="#]+)(?:\s*=\s*|\s+)(?P<value>\S.*)')
"""A pattern for a line of ssh_config(5): a keyword, then white space or one ``=``, then the arguments."""
_IGNORE = "ignoreunknown"

_MANUAL = """
addkeystoagent addressfamily batchmode bindaddress bindinterface canonicaldomains
canonicalizefallbacklocal canonicalizehostname canonicalizemaxdots canonicalizepermittedcnames
casignaturealgorithms certificatefile channeltimeout checkhostip ciphers clearallforwardings compression
connectionattempts connecttimeout controlmaster controlpath controlpersist dynamicforward
enableescapecommandline enablesshkeysign escapechar exitonforwardfailure fingerprinthash
forkafterauthentication forwardagent forwardx11 forwardx11timeout forwardx11trusted gatewayports
globalknownhostsfile gssapiauthentication gssapidelegatecredentials hashknownhosts host
hostbasedacceptedalgorithms hostbasedauthentication hostkeyalgorithms hostkeyalias hostname
identitiesonly identityagent identityfile ignoreunknown include ipqos kbdinteractiveauthentication
kbdinteractivedevices kexalgorithms knownhostscommand localcommand localforward loglevel logverbose macs
match nohostauthenticationforlocalhost numberofpasswordprompts obscurekeystroketiming
passwordauthentication permitlocalcommand permitremoteopen pkcs11provider port preferredauthentications
proxycommand proxyjump proxyusefdpass pubkeyacceptedalgorithms pubkeyauthentication refuseconnection
rekeylimit remotecommand remoteforward requesttty requiredrsasize revokedhostkeys securitykeyprovider
sendenv serveralivecountmax serveraliveinterval sessiontype setenv stdinnull streamlocalbindmask
streamlocalbindunlink stricthostkeychecking syslogfacility tag tcpkeepalive tunnel tunneldevice
updatehostkeys user userknownhostsfile verifyhostkeydns versionaddendum visualhostkey warnweakcrypto
xauthlocation
"""
KEYWORDS = frozenset(_MANUAL.split())
"""All keywords of ssh_config(5) in OpenSSH releases up to 10."""

_OLD = """
afstokenpassing challengeresponseauthentication cipher compressionlevel dsaauthentication fallbacktorsh
globalknownhostsfile2 gssapiclientidentity gssapikeyexchange gssapikexalgorithms gssapirenewalforcesrekey
gssapiserveridentity gssapitrustdns hostbasedkeytypes identityfile2 keepalive kerberosauthentication
kerberostgtpassing protocol protocolkeepalives pubkeyacceptedkeytypes rhostsauthentication
rhostsrsaauthentication rsaauthentication setuptimeout skeyauthentication smartcarddevice
tisauthentication useblacklistedkeys usekeychain useprivilegedport userknownhostsfile2 useroaming usersh
"""
_ACCEPTED = frozenset(_OLD.split())
"""Further keywords that toolkit accepts: obsolete keywords of OpenSSH (readconf.c), and keywords that vendors
such as Linux distributions add to OpenSSH, for example with the GSSAPI patch.
"""


def check_ssh_config(path: Path) -> None:
    """Check that each line of a file is empty, a comment, or a keyword of ssh_config(5) with a value.

    Raises:
        BadInput: if the file's name or content is not UTF-8, the file is larger than 1 MiB, or a line is
            invalid.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:  # a job's record contains the file name as UTF-8
        raise BadInput(f"--ssh-config {path}: the file name is not UTF-8", fix="rename the file") from error
    content = read_given(path, limit=_LARGEST, label="--ssh-config")
    ignored: list[str] = []
    for number, line in enumerate(content.splitlines(), 1):
        place = f"--ssh-config {path}:{number}"
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{place}: the line is not UTF-8, so the file is not an SSH configuration"
            ) from error
        text = text.removeprefix("\ufeff")
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        keyword = (match["keyword"] if match else text.split()[0]).lower()
        _check_keyword(keyword, ignored, place)
        if match is None:
            raise BadInput(f"{place}: {keyword[:40]}: the value is missing; write KEYWORD VALUE")
        if keyword == _IGNORE:
            ignored += re.split(r"[\s,]+", match["value"].lower())


def _check_keyword(keyword: str, patterns: Iterable[str], location: str) -> None:
    if (
        keyword in KEYWORDS
        or keyword in _ACCEPTED
        or any(fnmatchcase(keyword, pattern) for pattern in patterns)
    ):
        return
    shown = keyword if len(keyword) <= 40 else f"{keyword[:40]}…"
    raise BadInput(
        f"{location}: {shown!r} is not a keyword of ssh_config(5){suggest_near(keyword, KEYWORDS)}",
        fix="if the file is an SSH configuration, list the keyword in an `IgnoreUnknown` line above this "
        "line; otherwise give another file",
    )
