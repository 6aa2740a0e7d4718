import subprocess
import threading
import time

import pytest

from lab.core.errors import UsageError
from lab.testbed.interfaces import await_interface, find_interface, is_own
from tests.testbed.places import LEFT, RIGHT, three_places


def test_a_namespace_knows_its_own_addresses() -> None:
    with three_places() as places:
        own = [places.router.call(is_own, address) for address in ("192.0.2.1", "127.0.0.1", "192.0.2.77")]

    assert own == [True, True, False]


def test_an_interface_is_found_by_its_name_an_address_or_its_network() -> None:
    with three_places() as places:
        for text in (LEFT, "192.0.2.1", "192.0.2.0/24", "2001:db8:1::1", "2001:db8:1::/64"):
            assert places.router.call(find_interface, text) == LEFT
        assert places.router.call(find_interface, "198.51.100.0/24") == RIGHT


@pytest.mark.parametrize("text", ["nix0", "203.0.113.1", "0.0.0.0/0", "2001:db8:3::/64", "", "lo", "127.0.0.1"])
def test_none_or_several_is_a_usage_error_that_lists_them(text: str) -> None:
    with three_places() as places, pytest.raises(UsageError, match=f"{LEFT} 192.0.2.1 .*{RIGHT} 198.51.100.1"):
        places.router.call(find_interface, text)


def await_late(text: str, interface: str, delay_s: float) -> str:
    """Wait for an address that the interface gets after a while."""
    add = threading.Timer(delay_s, lambda: subprocess.run(["ip", "addr", "add", text, "dev", interface], check=True))
    add.start()
    try:
        return await_interface(text, time.monotonic() + 10)
    finally:
        add.join()


def test_one_that_is_still_being_attached_is_waited_for_and_no_longer() -> None:
    with three_places() as places:
        assert places.router.call(await_late, "2001:db8:9::1", LEFT, 0.2) == LEFT
        began = time.monotonic()
        with pytest.raises(UsageError, match="Exactly one interface"):
            places.router.call(await_interface, "203.0.113.2", began + 0.2)
        assert 0.2 <= time.monotonic() - began < 5
