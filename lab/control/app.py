"""The routes; each a few lines around a method of the controller."""

import json
import time
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Body, FastAPI, Header, Response
from fastapi import Path as PathParameter
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, StreamingResponse
from starlette.types import ASGIApp

import lab
from lab.control import download, problems, stream
from lab.control.controller import Controller
from lab.control.gate import Gate
from lab.control.models import (
    FaultList,
    FaultOrder,
    FaultView,
    FlowList,
    FlowView,
    Health,
    HeartbeatView,
    VerdictView,
)
from lab.control.page import POLICY, page
from lab.control.verdict import verdict_on

DESCRIPTION = """Cuts one established TCP flow that passes this router: its packets vanish, nothing is closed, new
connections pass. Heals it again, and proves what happened.

On TCP every request but GET /healthz carries the controller's token, as "Authorization: Bearer TOKEN"; on a Unix socket
none does. Times named ..._at are Unix times, those named ..._s seconds."""


class Problem(BaseModel):
    """An error (RFC 9457); some have further members, such as the flows that pass."""

    type: str
    title: str
    status: int
    detail: str
    fix: str | None = Field(None, description="The one line that mends it.")


def _answers(*statuses: int, media_type: str | None = None) -> dict[int | str, dict[str, Any]]:
    """Descriptions of the problems that a route may answer, and of what else but JSON it gives."""
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    plain: dict[int | str, dict[str, Any]] = {} if media_type is None else {200: {"content": {media_type: {}}}}
    words = {401: "no token", 404: "unknown", 409: "conflict", 422: "malformed", 503: "not ready"}
    for status in (401, *statuses):
        plain[status] = {"description": words[status], "content": content}
    return plain


EXAMPLES = {
    "by port": {"value": {"select": {"server_port": 5000}}},
    "the newest, healed after 30 s": {
        "value": {"select": {"server_port": 5000, "which": "newest"}, "heal_after_s": 30}
    },
    "by its ends, one way": {
        "value": {
            "flow": {"client": "192.0.2.10:40000", "server": "198.51.100.20:5000"},
            "direction": "return",
        }
    },
}

_CUT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": FaultView, "description": "in force already"},
    **_answers(404, 409, 422, 503),
}

FaultId = Annotated[str, PathParameter(alias="id", max_length=64)]


def guarded(controller: Controller, token: str | None, names: Iterable[str] = ()) -> ASGIApp:
    """The application behind its gate.

    Args:
        controller: What it controls.
        token: For TCP; None on a Unix socket.
        names: Host names that the controller is reached by, beside localhost and router.
    """
    return Gate(create_app(controller), token, names)


def create_app(controller: Controller) -> FastAPI:
    """The application, open to whoever reaches it."""
    app = FastAPI(
        title="blackhole-lab control API",
        version=lab.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    problems.install(app)
    _add_flows(app, controller)
    _add_faults(app, controller)
    _add_watching(app, controller)
    _add_pages(app, controller)
    return app


def _add_flows(app: FastAPI, controller: Controller) -> None:
    @app.get("/flows", responses=_answers())
    def get_flows() -> FlowList:
        """The open TCP flows that pass the router, oldest first."""
        return FlowList(flows=[FlowView.of(one, fault) for one, fault in controller.flows()])


def _add_faults(app: FastAPI, controller: Controller) -> None:
    @app.post(
        "/faults",
        status_code=201,
        responses=_CUT_ANSWERS,
    )
    def post_faults(order: Annotated[FaultOrder, Body(openapi_examples=EXAMPLES)], response: Response) -> FaultView:
        """Cut a flow: both directions in one step, from the answer on nothing passes. Idempotent while in force."""
        record, new = controller.cut(
            order.target(),
            direction=order.direction,
            scope=order.scope,
            heal_after_s=order.heal_after_s,
            must_exist=order.must_exist,
        )
        response.status_code = 201 if new else 200
        response.headers["Location"] = f"/faults/{record.name}"
        return FaultView.of(record, time.monotonic())

    @app.get("/faults", responses=_answers())
    def get_faults() -> FaultList:
        """Every fault that is remembered, oldest first; healed ones are forgotten after a thousand more."""
        now = time.monotonic()
        return FaultList(faults=[FaultView.of(record, now) for record in controller.faults()])

    @app.delete("/faults", responses=_answers())
    def delete_faults() -> FaultList:
        """Heal all that is in force; those that were."""
        healed, now = controller.heal_all(), time.monotonic()
        return FaultList(faults=[FaultView.of(record, now) for record in healed])

    @app.get("/faults/{id}", responses=_answers(404))
    def get_fault(name: FaultId) -> FaultView:
        """One fault, its counters read just now."""
        return FaultView.of(controller.fault(name), time.monotonic())

    @app.delete("/faults/{id}", responses=_answers(404))
    def delete_fault(name: FaultId) -> FaultView:
        """Heal a fault; idempotent, the answer is its final state."""
        return FaultView.of(controller.heal(name), time.monotonic())

    @app.get("/faults/{id}/verdict", responses=_answers(404, 503))
    def get_verdict(name: FaultId) -> VerdictView:
        """What the router can prove of a fault, and what both senders did meanwhile."""
        return VerdictView.of(verdict_on(controller, name), time.monotonic())


def _add_watching(app: FastAPI, controller: Controller) -> None:
    @app.get(
        "/events",
        response_class=StreamingResponse,
        responses=_answers(media_type="text/event-stream"),
    )
    async def get_events(last_event_id: Annotated[str | None, Header(max_length=64)] = None) -> StreamingResponse:
        """What happens, as server-sent events; first what is kept of the past.

        Their types: flow-appeared, flow-ended, cut, matched, healed, heartbeat-lost, capture-started, capture-failed,
        trouble, closing. With Last-Event-ID it goes on behind that event.
        """
        return StreamingResponse(
            stream.events(controller.events, last_event_id),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )

    @app.get(
        "/captures/{side}",
        response_class=StreamingResponse,
        responses=_answers(422, 503, media_type=download.MEDIA_TYPE),
    )
    def get_capture(side: download.Side) -> StreamingResponse:
        """What was captured on one side until now, as pcapng: left is towards the client, right towards the server.

        The capture goes on. On disk each side is bounded; the oldest packets go first.
        """
        return download.response(controller, side)

    @app.post("/heartbeat", responses=_answers())
    def post_heartbeat() -> HeartbeatView:
        """The owner lives. With --heartbeat T, silence for T seconds after the first one heals everything."""
        beat = controller.beat()
        return HeartbeatView(heartbeat=beat.pulse.value, heartbeat_s=beat.within_s)  # type: ignore[arg-type]  # see beat


def _add_pages(app: FastAPI, controller: Controller) -> None:
    @app.get("/healthz", responses={503: {"model": Health, "description": "failing or ending"}})
    async def get_healthz(response: Response) -> Health:
        """How the controller is; takes no token."""
        health = Health.of(controller, lab.__version__)
        response.status_code = 200 if health.status == "ok" else 503
        return health

    @app.get("/metrics", response_class=Response, responses=_answers(media_type="text/plain"))
    def get_metrics() -> Response:
        """Figures in Prometheus' text format."""
        # Not needed by most, and 80 ms to load.
        from lab.control import metrics

        return Response(metrics.exposition(controller), media_type=metrics.MEDIA_TYPE)

    @app.get("/openapi.json", include_in_schema=False)
    def get_openapi() -> Response:
        return Response(json.dumps(_openapi(app)), media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    def get_docs() -> HTMLResponse:
        return HTMLResponse(page(_openapi(app)), headers={"Content-Security-Policy": POLICY})


def _openapi(app: FastAPI) -> dict[str, Any]:
    schema = app.openapi()
    schemas = schema["components"]["schemas"]
    if "Problem" not in schemas:
        schemas["Problem"] = Problem.model_json_schema()
        # FastAPI describes its own form of a malformed request, which nobody gets here.
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        malformed = _answers(422)[422]
        for operation in (one for path in schema["paths"].values() for one in path.values()):
            if "422" in operation["responses"]:
                operation["responses"]["422"] = malformed
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        schema["paths"]["/healthz"]["get"]["security"] = []
    return schema
