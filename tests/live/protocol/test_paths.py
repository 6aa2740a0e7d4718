"""Every client finds the door that it looks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.live.protocol.paths import Endpoint, EndpointKind, developer, find

DEVELOPER, CONSTRAINED, VERTEX, FIREBASE = EndpointKind

FOUND = {
    developer("v1"): Endpoint(DEVELOPER, "v1"),
    developer("v1beta") + "?key=secret": Endpoint(DEVELOPER, "v1beta"),
    "/" + developer("v1alpha"): Endpoint(DEVELOPER, "v1alpha"),
    "/a/prefix" + developer("v9"): Endpoint(DEVELOPER, "v9"),
    developer() + "Constrained?access_token=x/ws/y": Endpoint(CONSTRAINED, "v1beta"),
    "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent": Endpoint(VERTEX, "v1beta1"),
    "/ws/google.firebase.vertexai.v1beta.GenerativeService/BidiGenerateContent?key=k": Endpoint(FIREBASE, "v1beta"),
    "/ws/google.firebase.vertexai.v1beta.LlmBidiService/BidiGenerateContent/locations/us-central1": Endpoint(
        FIREBASE, "v1beta", "us-central1"
    ),
}


@pytest.mark.parametrize("path", FOUND)
def test_a_clients_path_says_who_it_is(path: str) -> None:
    assert find(path) == FOUND[path]


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/ws/", "/healthz", developer().removeprefix("/ws/"), developer() + "/", developer() + "More"),
        *("/ws/google.ai.generativelanguage..GenerativeService.BidiGenerateContent", "/x?/ws/" + developer()),
        "/ws/google.cloud.aiplatform.v1.LlmBidiService.BidiGenerateContent",
    ],
)
def test_no_client_looks_elsewhere(path: str) -> None:
    assert find(path) is None


@given(st.text(max_size=80))
def test_any_path_is_read(path: str) -> None:
    assert find(path) is None
