"""Settings are pinned before programs start, and whoever fails says why."""

import pytest

from lab.core.errors import Unsupported, UsageError
from lab.core.profiles import PROFILES
from lab.run.arrange import apply_settings, start, write_extra
from lab.run.spec import Program
from tests.run.fakes import FakeNode, FakeProcess

CONGESTION = "net.ipv4.tcp_congestion_control"
RTO_MAX = "net.ipv4.tcp_rto_max_ms"
RETRIES2 = "net.ipv4.tcp_retries2"


def test_every_pin_of_the_profile_is_written() -> None:
    node = FakeNode()
    apply_settings(node, PROFILES["fast"], {})

    assert {pin.sysctl: pin.values[0] for pin in PROFILES["fast"].pins}.items() <= node.settings.items()


def test_the_second_choice_is_taken_where_the_first_is_refused() -> None:
    node = FakeNode(refused={CONGESTION: {"cubic"}})
    apply_settings(node, PROFILES["linux"], {})

    assert node.settings[CONGESTION] == "reno"


def test_a_pin_that_the_kernel_refuses_in_every_form_is_said() -> None:
    node = FakeNode(refused={CONGESTION: {"cubic", "reno"}})

    with pytest.raises(UsageError, match="cubic or reno of profile linux"):
        apply_settings(node, PROFILES["linux"], {})


def test_the_users_word_comes_last() -> None:
    node = FakeNode()
    apply_settings(node, PROFILES["fast"], {RETRIES2: "9"})

    assert node.settings[RETRIES2] == "9"


def test_where_the_kernel_lacks_the_ceiling_the_counts_of_the_fast_profile_take_its_place() -> None:
    node = FakeNode()
    del node.settings[RTO_MAX]
    apply_settings(node, PROFILES["fast"], {})

    assert node.settings[RETRIES2] == "3"
    assert RTO_MAX not in node.settings


def test_a_profile_that_depends_on_a_knob_is_unsupported_without_it() -> None:
    node = FakeNode()
    del node.settings[RTO_MAX]

    with pytest.raises(Unsupported, match=r"study-server depends on net.ipv4.tcp_rto_max_ms \(since Linux 6.15\)"):
        apply_settings(node, PROFILES["study-server"], {})


def test_defaults_of_knobs_that_the_kernel_lacks_need_no_knob() -> None:
    node = FakeNode()
    del node.settings[RTO_MAX]
    apply_settings(node, PROFILES["linux"], {})

    assert node.settings[RETRIES2] == "15"


def test_a_knob_of_newer_kernels_is_unsupported_and_one_of_no_kernel_a_mistake() -> None:
    node = FakeNode(name="router")
    del node.settings[RTO_MAX]

    with pytest.raises(Unsupported, match=RTO_MAX):
        write_extra(node, {RTO_MAX: "1000"})
    with pytest.raises(UsageError, match=r"no sysctl net\.ipv4\.tcp_retires2 in the router node"):
        write_extra(node, {"net.ipv4.tcp_retires2": "5"})


def test_a_command_is_run_and_a_program_of_the_labs_own_is_forked() -> None:
    node = FakeNode(programs=[FakeProcess(), FakeProcess()])

    assert start(Program(("nc", "server", "5000")), node).argv == ("nc", "server", "5000")
    assert start(Program(("5000",), "lab.programs.server"), node).argv == ("lab.programs.server", "5000")
