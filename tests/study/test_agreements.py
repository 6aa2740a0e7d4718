"""What the scenarios take for granted of the programs that play them."""

import json

import pytest

from lab.core.profiles import profile_named
from lab.live.client.script import parse_script
from lab.live.recovery.policy import Policy
from lab.live.session.profile import find as find_profile
from lab.live.session.states import Detach
from lab.live.voice.clips import texts
from lab.study.proofs import TIMED_OUT
from lab.study.scenario import Scenario
from lab.study.scenarios import SCENARIOS

ALL = [pytest.param(scenario, id=name) for name, scenario in SCENARIOS.items()]


@pytest.mark.parametrize("scenario", ALL)
def test_the_assistant_can_read_every_script(scenario: Scenario) -> None:
    for variant in (*scenario.lapsed, *scenario.real):
        assert len(parse_script(json.dumps(list(variant.steps))).steps) == len(variant.steps)
        assert {step["clip"] for step in variant.steps if step["do"] == "say"} <= set(texts())


@pytest.mark.parametrize("scenario", ALL)
def test_the_recovery_the_server_and_the_kernel_know_what_is_asked_of_them(scenario: Scenario) -> None:
    Policy.of(dict(scenario.policy))
    find_profile(scenario.server.profile).with_(**scenario.server.settings)
    for variant in (*scenario.lapsed, *scenario.real):
        assert profile_named(variant.kernel.profile)


def test_the_server_calls_its_kernel_s_end_by_this_name() -> None:
    assert Detach.TCP_TIMEOUT.value == TIMED_OUT
