"""Captures whose story is known: what was measured beside them, or what their publishers and others found in them."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.pcap.shared import FOLDER, capture, flows


def only(name: str) -> dict[str, Any]:
    found = flows(name)
    assert len(found) == 1
    return found[0]


def classes(flow: dict[str, Any]) -> dict[str, int]:
    return dict(Counter(copy["class"] for copy in flow["copies"]))


def said(flow: dict[str, Any]) -> str:
    return " ".join(flow["diagnosis"])


def gave_up_s(name: str) -> float:
    """When the client's kernel gave up, from the first lost send, as measured."""
    for line in (FOLDER / "own" / "results.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["name"] == name:
            return float(entry["client"][0])
    raise KeyError(name)


@pytest.mark.parametrize(
    ("name", "timeouts", "cap_s"), [("busy_default", 15, 120.8), ("busy_retries2_5", 5, None), ("busy_uto20", 6, None)]
)
def test_a_busy_flow_in_a_hole(name: str, timeouts: int, cap_s: float | None) -> None:
    flow = only(f"own/{name}.pcap")

    assert classes(flow) == {"tail-loss-probe": 1, "timeout-copy": timeouts}
    assert flow["silence"]["since_s"] == pytest.approx(0.261, abs=0.001)
    assert flow["silence"]["healed_s"] is None
    assert flow["silence"]["direction"] == "both"
    assert flow["ladder"]["base_s"] == pytest.approx(0.21, abs=0.005)
    assert flow["ladder"]["cap_s"] == (None if cap_s is None else pytest.approx(cap_s, abs=0.1))
    assert (flow["rst"], flow["fin"]) == ([], [])
    assert "blackhole in both directions" in said(flow)
    # The kernel died after the last copy and before the next one was due.
    died_s = flow["silence"]["since_s"] + gave_up_s(name)
    assert flow["last_copy_s"] < died_s < flow["last_copy_s"] + 2.1 * flow["ladder"]["steps_s"][-1]


def test_a_keepalive_death() -> None:
    flow = only("own/idle_keepalive_10_5_3.pcap")

    assert classes(flow) == {"keepalive-probe": 3}
    assert [copy["length"] for copy in flow["copies"]] == [0, 0, 0]
    assert flow["rst"] == [{"time_s": 25.719107, "direction": "forward"}]
    assert gave_up_s("idle_keepalive_10_5_3") == pytest.approx(flow["rst"][0]["time_s"], abs=0.3)
    assert "keepalive death" in said(flow)


def test_a_loss_of_the_answers_alone_looks_like_a_loss_of_both_from_the_clients_side() -> None:
    flow = only("own/oneway_s2c.pcap")

    assert classes(flow) == {"tail-loss-probe": 1, "timeout-copy": 5}
    assert flow["silence"]["certain"] is False
    assert "the server may have the data" in said(flow)


def test_icmp_undoes_the_back_off() -> None:
    flow = only("own/icmp_unreach.pcap")

    assert classes(flow) == {"tail-loss-probe": 1, "timeout-copy": 16}
    assert sum(flow["icmp"].values()) == 15
    assert flow["ladder"]["cap_s"] is None
    assert "host unreachable" in said(flow)
    assert "no silent blackhole" in said(flow)


def test_a_drop_in_the_senders_own_output_chain_cannot_be_seen() -> None:
    flow = only("own/local_output_drop.pcap")

    assert flow["copies"] == []
    assert flow["silence"] is None
    assert "OUTPUT chain" in said(flow)


def test_a_capture_that_ends_before_the_path_healed() -> None:
    flow = only("own/heal_after_30s.pcap")

    assert classes(flow) == {"tail-loss-probe": 1, "timeout-copy": 7}
    assert flow["silence"]["healed_s"] is None
    assert "nor whether the path healed after the capture ended" in said(flow)


def test_a_connect_into_a_hole() -> None:
    flow = only("own/syn_blackhole_linear0.pcap")

    assert classes(flow) == {"syn-copy": 6}
    assert flow["ladder"]["base_s"] == pytest.approx(1.0, abs=0.01)
    assert flow["silence"]["since_s"] == 0.0
    assert "7 SYNs and no answer" in said(flow)


def test_a_closed_window_with_a_live_peer() -> None:
    flow = only("own/zero_window_alive.pcap")

    assert classes(flow) == {"window-probe": 13, "spurious-copy": 2}
    assert flow["silence"] is None
    assert flow["ladder"]["of"] == "window-probe"
    assert flow["ladder"]["base_s"] == pytest.approx(0.216, abs=0.001)
    assert flow["ladder"]["cap_s"] == pytest.approx(120.8, abs=0.1)
    assert "not loss" in said(flow)


def test_01_an_orphan_in_last_ack_tries_eight_times() -> None:
    flow = only("public/01_suricata-verify_bug-2646-01.pcap")

    assert classes(flow) == {"tail-loss-probe": 1, "timeout-copy": 8}
    assert "in LAST_ACK, resent its last data and FIN 8 times" in said(flow)
    assert flow["ladder"]["steps_s"] == pytest.approx(
        [0.223, 0.463, 0.901, 1.784, 3.589, 7.173, 14.335, 28.662], abs=1e-3
    )


def test_02_the_same_with_a_bare_fin() -> None:
    flow = only("public/02_nDPI_bt-http.pcapng")

    assert classes(flow) == {"fin-copy": 8}
    assert "in LAST_ACK, resent its FIN 8 times" in said(flow)
    assert flow["ladder"]["base_s"] == pytest.approx(0.224, abs=1e-3)


def test_05_an_initial_timer_of_three_seconds() -> None:
    flow = only("public/05_suricata-verify_bug-28.pcap")

    assert classes(flow) == {"timeout-copy": 5}
    assert flow["ladder"]["steps_s"] == pytest.approx([2.894, 6.015, 12.032, 23.954, 48.015], abs=1e-3)
    assert "3 s initial timer" in said(flow)


def test_07_three_dark_flows_among_healthy_ones() -> None:
    found = flows("public/07_nDPI_conncheck.pcap")
    dark = [flow for flow in found if flow["silence"]]

    assert (len(found), len(dark)) == (9, 3)
    assert [classes(flow) for flow in dark] == [
        {"tail-loss-probe": 1, "timeout-copy": 5},
        {"tail-loss-probe": 1, "timeout-copy": 5},
        {"tail-loss-probe": 1, "timeout-copy": 4},
    ]
    assert all(flow["copies"] == [] for flow in found if not flow["silence"])


def test_09_needless_copies_on_a_lossy_link_and_a_fin_that_nobody_answers() -> None:
    flow = only("public/09_zeek_pppoe-over-qinq.pcap")

    assert classes(flow)["spurious-copy"] == 13
    assert sum(classes(flow).values()) == 25
    assert flow["silence"]["since_s"] == pytest.approx(273.627, abs=1e-3)
    assert flow["ladder"]["steps_s"] == pytest.approx([0.31, 0.61, 1.21, 2.41], abs=1e-2)


def test_12_a_connect_that_is_answered_after_eleven_seconds() -> None:
    flow = only("public/12_nDPI_syslog.pcap")

    assert classes(flow) == {"syn-copy": 7}
    assert flow["silence"]["healed_s"] - flow["silence"]["since_s"] == pytest.approx(11.279, abs=1e-3)
    assert flow["ladder"]["cap_s"] is None, "the linear start is no cap"
    assert "of 8 SYNs only the last was answered" in said(flow)


def test_16_only_the_way_back_is_dead_and_heals_on_the_last_try() -> None:
    flow = only("public/16_nDPI_edonkey.pcap")

    assert flow["silence"]["direction"] == "return"
    assert flow["silence"]["certain"] is True
    assert flow["silence"]["healed_s"] == pytest.approx(45.288, abs=1e-3)
    assert flow["ladder"]["steps_s"] == pytest.approx([2.943, 6.036, 11.976, 12.07, 12.072], abs=1e-3)
    assert flow["ladder"]["cap_s"] == pytest.approx(12.07, abs=1e-2)
    assert "window" not in said(flow), "a window of 0 in the last acknowledgment is no back pressure"


def test_26_frames_captured_twice_and_damaged_headers_are_hardly_any_loss() -> None:
    flow = only("public/26_nDPI_reasm_crash_anon.pcapng")

    assert len(flow["copies"]) <= 5
    assert flow["silence"] is None
    assert flow["classes"]["tap-duplicate"] == 34
    assert "captured twice" in said(flow)
    assert "did not end the flow" in said(flow)


def test_28_two_vlans_of_one_path_are_no_loss() -> None:
    flow = only("public/28_zeek_vlan-collisions.pcap")

    assert flow["copies"] == []
    assert flow["silence"] is None
    assert flow["classes"] == {"first": 16, "tap-duplicate": 26}
    assert flow["diagnosis"][0] == "Nothing was lost as far as this capture shows."


def test_every_published_capture_has_a_test_here() -> None:
    manifest = json.loads(capture("public/manifest.json").read_text())
    tested = {name.split("_")[1] for name in globals() if name.startswith("test_") and name.split("_")[1].isdigit()}

    assert {entry["file"].split("_")[0] for entry in manifest["files"]} == tested
