"""The bystander's life, from its output and both captures."""

import json

import pytest

from lab.core.flow import Endpoint
from lab.core.segment import Flag
from lab.run.bystander import read_bystander
from lab.run.sides import Side
from tests.run.cases import segment, watched
from tests.run.fakes import CLIENT, SERVER, FakeProcess


def talking(until: float, step_s: float = 0.2) -> FakeProcess:
    process, at = FakeProcess(), 98.0
    while at <= until:
        process.say(at, json.dumps({"at": at, "event": "received", "bytes": 7, "total": 7}))
        at += step_s
    return process


EMPTY = {"left": Side([], []), "right": Side([], [])}


def test_a_bystander_that_talks_to_the_end_is_unharmed() -> None:
    seen = read_bystander(watched(talking(103.0)), EMPTY)

    assert (seen.alive, seen.lost) == (True, 0)
    assert seen.longest_gap_s == pytest.approx(0.2)


def test_silence_at_the_end_is_a_gap_too() -> None:
    assert read_bystander(watched(talking(100.5)), EMPTY).longest_gap_s == pytest.approx(2.6, abs=0.11)


def test_silence_long_before_the_cut_is_none() -> None:
    process = talking(103.0)
    process.lines[:] = [line for line in process.lines if not 98.1 < line.at < 99.5]

    assert read_bystander(watched(process), EMPTY).longest_gap_s == pytest.approx(0.2)


@pytest.mark.parametrize("event", ["error", "eof", "closed"])
def test_a_bystander_that_was_told_anything_is_dead(event: str) -> None:
    process = talking(103.0)
    process.say(102.0, json.dumps({"at": 102.0, "event": event}))

    assert not read_bystander(watched(process), EMPTY).alive


def test_a_bystander_that_never_talked_or_has_exited_is_dead() -> None:
    exited = talking(103.0)
    exited.exit(102.9)

    assert not read_bystander(watched(exited), EMPTY).alive
    assert not read_bystander(watched(FakeProcess()), EMPTY).alive


def test_what_the_bystander_resent_was_lost_and_a_client_port_like_its_own_is_not_its() -> None:
    its = Endpoint(SERVER.address, 40007)
    mine = [segment(at, Flag.ACK, 7)._replace(destination=its) for at in (101.0, 101.3)]
    unlucky = [segment(at, Flag.ACK, 7)._replace(source=Endpoint(CLIENT.address, 40007)) for at in (101.0, 101.3)]

    assert read_bystander(watched(talking(103.0)), {**EMPTY, "left": Side(mine, [])}).lost == 1
    assert read_bystander(watched(talking(103.0)), {**EMPTY, "left": Side(unlucky, [])}).lost == 0


def test_what_its_server_resent_on_a_link_that_no_capture_is_of_was_lost_too() -> None:
    assert read_bystander(watched(talking(103.0)), EMPTY, {"TcpRetransSegs": 2}).lost == 2
    assert read_bystander(watched(talking(103.0)), EMPTY, {"TcpOutSegs": 900}).lost == 0
