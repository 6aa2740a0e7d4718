import pytest

from lab.live.lifecycle.endpoints import ENDPOINTS, Endpoint
from lab.live.protocol import paths
from lab.live.protocol.paths import EndpointKind
from lab.live.session.profile import Handles, OldCall

EVERY = [pytest.param(endpoint, id=name) for name, endpoint in ENDPOINTS.items()]


def test_there_are_two_endpoints_with_two_models_each() -> None:
    assert len(ENDPOINTS) == 4
    assert len({endpoint.path for endpoint in ENDPOINTS.values()}) == 2
    assert len({endpoint.model for endpoint in ENDPOINTS.values()}) == 4


@pytest.mark.parametrize("endpoint", EVERY)
def test_the_server_knows_its_path_and_its_sources_are_named(endpoint: Endpoint) -> None:
    found = paths.find(endpoint.path)

    assert found is not None
    assert found.kind is EndpointKind.FIREBASE
    assert endpoint.server.name == endpoint.name
    assert len(endpoint.sources) >= 3


@pytest.mark.parametrize("endpoint", EVERY)
def test_a_setup_names_the_model_and_asks_for_a_handle_if_it_is_to(endpoint: Endpoint) -> None:
    assert endpoint.setup().model == endpoint.model
    assert endpoint.setup().session_resumption is not None
    assert endpoint.setup(resumable=False).session_resumption is None


def test_the_rules_differ_where_sources_say_so() -> None:
    rules = {name: endpoint.server for name, endpoint in ENDPOINTS.items()}

    assert {name for name in rules if rules[name].old_call is OldCall.IGNORE} == {
        "developer-older",
        "agent-platform-older",
    }
    assert {name for name in rules if rules[name].handles is Handles.MANY} == {
        "agent-platform-older",
        "agent-platform-newer",
    }
    assert {rules[name].concurrent_limit for name in rules} == {3, 1000}
