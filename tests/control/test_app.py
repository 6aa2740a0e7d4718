"""The API over a router that is not there: what each route answers, and that every error is a problem document."""

import json
import re
import string
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from lab.control.app import create_app
from lab.control.controller import Controller
from lab.control.problems import KINDS, MEDIA_TYPE
from lab.core.fault import Cut, Fault, Scope
from tests.control.asking import Answer, Asking
from tests.control.fakes import FLOW, FLOW6, OTHER, FakeRouter, passing

BY_PORT = {"select": {"server_port": 5000}}
BY_ENDS = {"flow": {"client": "192.0.2.10:40000", "server": "198.51.100.20:5000"}}


@pytest.fixture
def client(controller: Controller) -> Asking:
    return Asking(create_app(controller))


def problem(answer: Answer, status: int, kind: str) -> dict[str, Any]:
    """The problem document, checked."""
    assert answer.headers["content-type"] == MEDIA_TYPE
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["status"], body["type"], body["title"]) == (
        status,
        status,
        f"/docs#{kind}",
        KINDS[kind],
    )
    assert body["detail"]
    return body


def test_flows_are_listed_as_connection_tracking_has_them(client: Asking) -> None:
    answer = client.get("/flows")

    assert answer.status_code == 200
    assert answer.json()["flows"] == [
        {
            "client": "192.0.2.10:40000",
            "server": "198.51.100.20:5000",
            "state": "established",
            "assured": True,
            "packets": {"forward": 3, "return": 2},
            "octets": {"forward": 180, "return": 120},
            "since": 100.0,
            "fault": None,
        }
    ]


@pytest.mark.parametrize("order", [BY_PORT, BY_ENDS])
def test_a_cut_answers_201_with_its_place_and_the_same_again_200(client: Asking, order: dict[str, Any]) -> None:
    first, again = client.post("/faults", json=order), client.post("/faults", json=order)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.headers["location"] == again.headers["location"] == f"/faults/{first.json()['id']}"
    assert client.get(first.headers["location"]).json()["state"] == "cut"


def test_a_fault_tells_when_it_was_cut_and_healed_and_what_it_dropped(client: Asking, router: FakeRouter) -> None:
    place = client.post("/faults", json=BY_PORT).headers["location"]
    router.drop(Fault(FLOW), 5, 4)
    cut, healed = client.get(place).json(), client.delete(place).json()

    assert cut["matched"] == healed["matched"] == {"forward": 5, "return": 4}
    assert (cut["state"], cut["healed_at"], cut["healed_by"]) == ("cut", None, None)
    assert (healed["state"], healed["healed_by"]) == ("healed", "request")
    assert healed["healed_after_s"] == pytest.approx(healed["healed_at"] - healed["cut_at"], abs=1e-3)
    assert client.delete(place).json()["healed_at"] == healed["healed_at"]


def test_direction_scope_and_time_go_into_the_fault(client: Asking, router: FakeRouter) -> None:
    order = {**BY_PORT, "direction": "return", "scope": "host", "heal_after_s": 60}
    body = client.post("/faults", json=order).json()

    assert (body["direction"], body["scope"], body["heal_after_s"]) == ("return", "host", 60.0)
    assert router.cut_now == {Fault(FLOW, Cut.RETURN, Scope.HOST)}


def test_a_flow_over_ipv6_is_named_with_brackets(client: Asking, router: FakeRouter) -> None:
    router.passing.append(passing(FLOW6))
    order = {"flow": {"client": "[2001:DB8:1:0::10]:40000", "server": "[2001:db8:2::20]:5000"}}

    assert client.post("/faults", json=order).json()["flow"]["client"] == "[2001:db8:1::10]:40000"


def test_all_faults_are_listed_and_healed_at_once(client: Asking, router: FakeRouter) -> None:
    router.passing.append(passing(OTHER, since=200.0))
    for which in ("first", "newest"):
        client.post("/faults", json={"select": {"server_port": 5000, "which": which}})

    assert [one["state"] for one in client.get("/faults").json()["faults"]] == ["cut", "cut"]
    assert len(client.delete("/faults").json()["faults"]) == 2
    assert client.delete("/faults").json() == {"faults": []}
    assert [one["state"] for one in client.get("/faults").json()["faults"]] == ["healed", "healed"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/faults/nix"), ("DELETE", "/faults/nix"), ("GET", "/faults/nix/verdict")],
)
def test_an_unknown_fault_is_404_with_a_fix(client: Asking, method: str, path: str) -> None:
    assert problem(client.request(method, path), 404, "unknown-fault")["fix"] == "GET /faults lists them"


def test_a_flow_that_is_not_there_is_404_with_those_that_are(client: Asking) -> None:
    body = problem(client.post("/faults", json={"select": {"server_port": 5001}}), 404, "no-such-flow")

    assert body["flows"] == [{"client": "192.0.2.10:40000", "server": "198.51.100.20:5000"}]


def test_several_flows_are_409_with_all_of_them(client: Asking, router: FakeRouter) -> None:
    router.passing.append(passing(OTHER))

    assert len(problem(client.post("/faults", json=BY_PORT), 409, "ambiguous-flow")["flows"]) == 2


def test_a_second_cut_with_other_parameters_is_409_and_names_the_first(client: Asking) -> None:
    name = client.post("/faults", json=BY_PORT).json()["id"]
    body = problem(client.post("/faults", json={**BY_PORT, "direction": "forward"}), 409, "other-fault-in-force")

    assert body["fault"] == name
    assert body["fix"] == f"DELETE /faults/{name} first"


@pytest.mark.parametrize(
    ("order", "pointer", "words"),
    [
        ({}, "", "exactly one of flow and select"),
        ({**BY_PORT, **BY_ENDS}, "", "exactly one of flow and select"),
        ({**BY_PORT, "directon": "both"}, "/directon", "unknown member directon; known: flow, select, direction"),
        ({**BY_PORT, "direction": "sideways"}, "/direction", "'both', 'forward' or 'return'"),
        ({**BY_PORT, "heal_after_s": 0}, "/heal_after_s", "greater than 0"),
        ({"select": {"server_port": 0}}, "/select/server_port", "greater than or equal to 1"),
        ({"select": {"server_port": "5000"}}, "/select/server_port", "valid integer"),
        ({"flow": {"client": "192.0.2.10", "server": "198.51.100.20:5000"}}, "/flow/client", "as 192.0.2.10:40000"),
        ({"flow": {"client": "[192.0.2.10]:1", "server": "198.51.100.20:5000"}}, "/flow/client", "brackets"),
        ({"flow": {"client": "[::ffff:192.0.2.10]:1", "server": "[::1]:5000"}}, "/flow/client", "as the wire has it"),
        ({"flow": {"client": "[::1]:1", "server": "198.51.100.20:5000"}}, "/flow", "one family"),
    ],
)
def test_a_body_that_is_not_what_was_expected_is_422_and_says_where(
    client: Asking, router: FakeRouter, order: dict[str, Any], pointer: str, words: str
) -> None:
    errors = problem(client.post("/faults", json=order), 422, "malformed")["errors"]

    assert any(one["pointer"] == pointer and words in one["detail"] for one in errors), errors
    assert router.asked == []


@pytest.mark.parametrize(
    ("order", "detail"),
    [
        (
            {"selct": {}},
            "/selct: unknown member selct; known: flow, select, direction, scope, heal_after_s, must_exist",
        ),
        ({"flow": {"clint": "x"}}, "/flow/clint: unknown member clint; known: client, server"),
        ({"flow": {"server": "192.0.2.1:5000"}}, "/flow/client: this member is missing"),
        ({"select": {"server_port": 5000}, "direction": "up"}, "/direction: expected 'both', 'forward' or 'return'"),
        ([], "a JSON object was expected"),
    ],
)
def test_what_is_wrong_with_a_body_is_said_in_plain_words(client: Asking, order: Any, detail: str) -> None:
    assert detail in problem(client.post("/faults", json=order), 422, "malformed")["detail"]


def test_a_body_that_is_not_json_is_422(client: Asking) -> None:
    broken = client.post("/faults", content=b"{x", headers={"content-type": "application/json"})
    assert problem(broken, 422, "malformed")["detail"].startswith("the body is no JSON: ")
    form = problem(client.post("/faults", content=json.dumps(BY_PORT).encode()), 422, "malformed")
    assert form["fix"] == 'send "Content-Type: application/json"'
    problem(client.post("/faults"), 422, "malformed")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FLOW_TEXT = st.text(string.hexdigits + ".:[]%", max_size=30) | JSON
ORDERS = st.fixed_dictionaries(
    {},
    optional={
        "flow": st.fixed_dictionaries({}, optional={"client": FLOW_TEXT, "server": FLOW_TEXT}) | JSON,
        "select": st.fixed_dictionaries({}, optional={"server_port": st.integers() | JSON, "which": JSON}) | JSON,
        "direction": st.sampled_from(["both", "return"]) | JSON,
        "heal_after_s": JSON,
        "must_exist": JSON,
    },
)


@given(body=ORDERS | JSON)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_sent_the_answer_is_a_fault_or_a_problem(client: Asking, body: object) -> None:
    answer = client.post("/faults", json=body)

    assert answer.status_code in {200, 201, 404, 409, 422}, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == MEDIA_TYPE
        assert answer.json()["status"] == answer.status_code


@given(body=st.binary(max_size=200))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_octets_that_are_no_json_are_a_problem_too(client: Asking, body: bytes) -> None:
    answer = client.post("/faults", content=body, headers={"content-type": "application/json"})

    assert answer.status_code in {400, 422}, "400 where the octets are no text"
    assert answer.headers["content-type"] == MEDIA_TYPE


def test_a_body_of_brackets_alone_is_a_problem(client: Asking) -> None:
    answer = client.post("/faults", content=b"[" * 60_000, headers={"content-type": "application/json"})

    problem(answer, 400, "malformed")


def test_a_wrong_method_is_405_with_all_that_the_path_takes(client: Asking) -> None:
    answer = client.put("/faults")

    problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "DELETE, GET, POST"


def test_an_unknown_path_is_404(client: Asking) -> None:
    problem(client.get("/nix"), 404, "not-found")


def test_what_nobody_foresaw_is_500_without_a_traceback(
    client: Asking, router: FakeRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(router, "flows", fail)
    answer = client.get("/flows")

    problem(answer, 500, "failed")
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def test_a_router_that_is_gone_is_a_problem(client: Asking, router: FakeRouter) -> None:
    router.broken = True

    assert problem(client.post("/faults", json=BY_PORT), 500, "unproven")["detail"] == "The router is gone."


def test_health_is_200_while_all_is_well_and_503_at_the_end(client: Asking, controller: Controller) -> None:
    assert client.get("/healthz").json()["status"] == "ok"
    controller.close()
    answer = client.get("/healthz")

    assert (answer.status_code, answer.json()["status"]) == (503, "ending")


def test_a_heartbeat_says_that_there_is_no_switch(client: Asking) -> None:
    assert client.post("/heartbeat").json() == {"heartbeat": "off", "heartbeat_s": None}


def test_a_capture_of_neither_side_is_a_problem(client: Asking) -> None:
    problem(client.get("/captures/middle"), 422, "malformed")


def test_the_description_names_every_path_and_the_form_of_errors(client: Asking) -> None:
    schema = client.get("/openapi.json").json()

    assert set(schema["paths"]) == {
        "/flows", "/faults", "/faults/{id}", "/faults/{id}/verdict", "/events", "/captures/{side}", "/heartbeat",
        "/healthz", "/metrics",
    }  # fmt: skip
    assert "Problem" in schema["components"]["schemas"]
    assert "HTTPValidationError" not in json.dumps(schema)
    assert schema["paths"]["/healthz"]["get"]["security"] == []


def test_the_page_needs_nothing_from_elsewhere_and_runs_no_script(client: Asking) -> None:
    answer = client.get("/docs")

    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for word in ("http://", "https://", "<script", "src=", "@import", "url("):
        assert word not in answer.text
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in answer.text
    for kind in KINDS:
        assert f'id="{kind}"' in answer.text


def test_every_link_of_the_page_leads_somewhere(client: Asking) -> None:
    text = client.get("/docs").text
    targets = set(re.findall(r'href="#([^"]+)"', text))

    assert targets
    assert targets <= set(re.findall(r'id="([^"]+)"', text))


def test_metrics_are_in_prometheus_own_format(client: Asking, router: FakeRouter) -> None:
    place = client.post("/faults", json=BY_PORT).headers["location"]
    router.drop(Fault(FLOW), 5, 4)
    answer = client.get("/metrics")
    samples = {
        (one.name, *one.labels.values()): one.value
        for family in text_string_to_metric_families(answer.text)
        for one in family.samples
    }

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert samples["lab_cuts_total",] == 1
    assert samples["lab_faults_in_force",] == 1
    assert samples["lab_matched_packets_total", "forward"] == 5
    assert samples["lab_matched_packets_total", "return"] == 4
    assert samples["lab_captured_packets_total", "left"] == 5
    assert samples["lab_router_IpForwDatagrams_total",] == 7
    client.delete(place)
    assert "lab_faults_in_force 0.0" in client.get("/metrics").text
