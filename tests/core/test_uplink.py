"""A far end outside of the testbed, as everybody names it."""

from lab.core.flow import Endpoint
from lab.core.uplink import Uplink


def test_a_name_is_resolved_for_the_client_and_an_address_is_not() -> None:
    named, plain = Uplink("staging.example.com", 443, "203.0.113.9"), Uplink("203.0.113.9", 443, "203.0.113.9")

    assert (named.named, plain.named) == (True, False)
    assert (str(named), str(plain)) == ("staging.example.com:443 (203.0.113.9)", "203.0.113.9:443")
    assert named.endpoint == Endpoint("203.0.113.9", 443)


def test_its_family_is_its_addresss() -> None:
    far = Uplink("2001:db8::9", 443, "2001:db8::9")

    assert (far.ipv6, str(far)) == (True, "[2001:db8::9]:443")
    assert not Uplink("203.0.113.9", 443, "203.0.113.9").ipv6
