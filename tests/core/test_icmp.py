import pytest

from lab.core.icmp import IcmpMessage
from tests.core.script import CLIENT, SERVER


@pytest.mark.parametrize(
    ("ipv6", "kind", "code", "meaning"),
    [
        (False, 3, 1, "host unreachable"),
        (False, 3, 4, "fragmentation needed"),
        (False, 3, 77, "destination unreachable"),
        (False, 200, 0, "ICMP type 200 code 0"),
        (True, 1, 0, "no route to destination"),
        (True, 2, 0, "packet too big"),
    ],
)
def test_meanings(ipv6: bool, kind: int, code: int, meaning: str) -> None:
    assert IcmpMessage(0, "192.0.2.254", ipv6, kind, code, CLIENT, SERVER, 1).meaning == meaning
