"""google-genai as it comes, redirected by its environment alone, against the lab's session server.

Each check is a program of its own in ``programs/``; here is what must come of it.
"""

import json

import pytest

from tests.conformance.conftest import ROOT, Stage, wait_for


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_a_spoken_request_is_heard_called_answered_and_told(stage: Stage, clip: str) -> None:
    events = stage.finish(stage.start("speak", clip))

    assert events.first("connected")["session_id"]
    assert len(events.first("handle")["handle"]) == 36
    assert events.first("handle")["resumable"]
    assert "book" in events.first("heard")["text"].lower()
    assert events.first("tool_call")["args"] == {"slot": "tomorrow 3pm"}
    assert events.first("audio_first")["mime_type"] == "audio/pcm;rate=24000"
    assert all(turn["audio_octets"] > 24_000 for turn in events.of("turn")), "half a second of speech at least"
    assert "booked" in events.last("answer")["text"]
    assert not events.of("cancelled")


def test_after_an_abort_the_first_resume_is_refused_the_next_accepted_and_the_old_call_answered(stage: Stage) -> None:
    events = stage.finish(stage.start("resume"))

    assert events.first("first")["refused"]
    refused = events.first("refused")
    assert (refused["code"], refused["reason"]) == (1011, "Internal error encountered.")
    assert 0.4 <= refused["took_s"] <= 1.5
    assert 1.5 <= events.first("resumed")["since_s"] <= 4.0
    assert len(events.of("tool_call")) == 1, "it is neither lost nor made again"
    assert "booked" in events.last("answer")["text"]


def test_while_the_old_connection_is_silently_lost_every_resume_is_refused_until_it_is_closed(stage: Stage) -> None:
    program = stage.start("locked")
    wait_for(program, "tool_call")
    hole = stage.cut(program)
    program.write("cut\n")
    wait_for(program, "locked")
    stage.testbed.router.heal(hole.fault)
    program.write("healed\n")
    events = stage.finish(program)

    assert events.first("locked")["refused"] == events.first("locked")["attempts"] == 4
    assert events.first("path_back")["refused"], "the path alone does not unlock it"
    assert {(one["code"], one["reason"]) for one in events.of("refused")} == {(1011, "Internal error encountered.")}
    assert events.of("resumed"), "the close does"
    assert len(events.of("tool_call")) == 1
    assert "booked" in events.last("answer")["text"]


def test_with_the_labs_policy_on_top_the_user_is_told_the_truth_and_one_slot_is_booked(stage: Stage) -> None:
    program = stage.start("recover", PYTHONPATH=str(ROOT))
    wait_for(program, "tool_call")
    cut_at = stage.cut(program).since
    events = stage.finish(program)

    assert 1.4 <= events.first("silent")["at"] - cut_at <= 2.6, "a ping every 0.5 s, lost after 2.0 s"
    refused = events.of("refused")
    assert len(refused) == 4
    assert {(one["code"], one["reason"], one["resume"]) for one in refused} == {
        (1011, "Internal error encountered.", True)
    }
    assert not events.first("adopted")["resumed"], "a new session"
    assert len(events.of("tool_call")) == 1, "told by the note that it is booked, or about to be"
    assert events.first("bookings")["count"] == 1
    assert events.first("audio_first", since="restored")["at"] - cut_at <= 8.0
    assert "booked" in events.last("answer")["text"]


def test_the_reference_client_recovers_on_it_as_on_its_own_connections(stage: Stage) -> None:
    script = [
        {"do": "type", "text": "Book me the 3pm slot tomorrow, please."},
        {"do": "await", "event": "tool_call", "plus": 1.0},
        {"do": "mark", "name": "cut"},
        {"do": "await", "event": "lost"},
        {"do": "recover"},
        {"do": "ask", "text": "Did you book it?"},
        {"do": "end"},
    ]
    program = stage.start_client("--adapter", "google-genai", "--script", json.dumps(script))
    wait_for(program, "mark")
    cut_at = stage.cut(program).since
    wait_for(program, "done")
    program.write("quit\n")
    events = stage.finish(program)

    assert 1.4 <= events.first("lost")["at"] - cut_at <= 2.6
    assert [one["code"] for one in events.of("refused")] == [1011] * 4
    assert events.first("restored")
    assert len(events.of("tool_call")) == 1
    assert events.first("bookings")["count"] == 1
    assert events.first("answer")["consistent"]
