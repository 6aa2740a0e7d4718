"""What a run may be asked for, and what is the author's mistake before anything starts."""

from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.core.fault import Placement
from lab.core.prediction import State
from lab.core.uplink import Uplink
from lab.run.spec import Action, Program, RunSpec
from lab.run.trigger import LineTrigger

BACK = LineTrigger("client", "back")


def spec(**changes: Any) -> RunSpec:
    return RunSpec(**{"server": Program(("srv",)), "client": Program(("cli",)), "port": 5000, **changes})


@pytest.mark.parametrize("choice", [None, "first", "newest", "1", "40000", "65535"])
def test_a_flow_is_chosen_by_age_or_by_port(choice: str | None) -> None:
    assert spec(flow=choice).flow == choice


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"port": 0}, "1 to 65535"),
        ({"port": 65536}, "1 to 65535"),
        ({"sysctls": {"clinet": {}}}, "no node 'clinet'"),
        ({"cut_after_s": -1.0}, "cannot come before"),
        ({"heal_after_s": 0.0}, "heal must come after"),
        ({"watch_s": 0.0}, "take some time"),
        ({"heal_after_s": 5.0, "watch_s": 5.0}, "would come after the watch"),
        ({"flow": "latest"}, "'latest' is none"),
        ({"flow": ""}, "'' is none"),
        ({"flow": "0"}, "1 to 65535"),
        ({"flow": "70000"}, "1 to 65535"),
        ({"noticed": "lost ("}, "no regular expression"),
        ({"heal_after_s": 5.0, "heal_when": BACK}, "after a time or after a line"),
        ({"cut_when": BACK, "connect_from": 40000}, "cannot follow a line of the client's"),
        ({"cut_when": BACK, "actions": (Action(-0.5, "client", "send"),)}, "nobody knows when it comes"),
    ],
)
def test_nonsense_is_refused_with_what_was_expected(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        spec(**changes)


FAR = Uplink("203.0.113.9", 443, "203.0.113.9")


def outside(**changes: Any) -> RunSpec:
    return spec(**{"server": None, "port": 443, "uplink": FAR, **changes})


def test_with_an_uplink_the_server_is_called_by_its_own_name() -> None:
    assert spec().far_name == "server"
    assert outside(uplink=Uplink("staging.example.com", 443, "203.0.113.9")).far_name == "staging.example.com"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"uplink": None}, "A run needs a server"),
        ({"server": Program(("srv",))}, "another server, port or family"),
        ({"port": 80}, "another server, port or family"),
        ({"ipv6": True}, "another server, port or family"),
        ({"sysctls": {"server": {"net.ipv4.tcp_retries2": "5"}}}, "nothing can be set or done there"),
        ({"actions": (Action(1.0, "server", "send"),)}, "nothing can be set or done there"),
        ({"placement": Placement.OWN_OUTPUT}, "only in the router"),
        ({"connect_from": 40000}, "only established flows"),
        ({"server_state": State.ZERO_WINDOW}, "only established flows"),
        ({"end_when": LineTrigger("server", "done")}, "what it prints is not seen"),
    ],
)
def test_of_an_outside_server_no_more_is_asked_than_that_it_is_there(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        outside(**changes)


def test_a_program_of_the_labs_own_is_named_by_its_module() -> None:
    own = Program(("5000", "--keep-open"), "lab.programs.server")

    assert (own.own, str(own)) == (True, "server 5000 --keep-open")
    assert (Program(("nc", "-l")).own, str(Program(("nc", "-l")))) == (False, "nc -l")
