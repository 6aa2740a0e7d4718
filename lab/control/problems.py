"""Errors as problem documents (RFC 9457), whatever went wrong."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from lab.control.models import FaultOrder, FlowName, FlowSelector
from lab.control.refusals import Refusal
from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError

MEDIA_TYPE = "application/problem+json"

KINDS = {
    "bad-request": "The request cannot be done.",
    "unauthorized": "The token is missing or wrong.",
    "foreign-origin": "A web page of another origin asks.",
    "unknown-host": "The request was meant for another host.",
    "not-found": "There is nothing under this path.",
    "unknown-fault": "There is no such fault.",
    "no-such-flow": "There is no such flow.",
    "method-not-allowed": "The path does not take this method.",
    "ambiguous-flow": "Several flows match.",
    "other-fault-in-force": "The flow is cut already, in another way.",
    "too-large": "The body is too large.",
    "malformed": "The request is not what was expected.",
    "unproven": "It could not be proved.",
    "failed": "The controller failed in a way nobody foresaw.",
    "unsupported": "This kernel cannot do it.",
    "no-capture": "The capture does not run.",
    "closing": "The controller is ending.",
    "not-ready": "Something is missing here.",
    "no-answer": "The router does not answer.",
}
"""Every problem type and its title; the page at /docs lists them."""

_MEMBERS: Mapping[tuple[str, ...], Sequence[str]] = {
    (): list(FaultOrder.model_fields),
    ("flow",): list(FlowName.model_fields),
    ("select",): list(FlowSelector.model_fields),
}
"""What each object of a body may have, by where it is."""

_BY_STATUS = {404: "not-found", 405: "method-not-allowed"}

_OF_ERRORS: Sequence[tuple[type[Exception], int, str]] = (
    (UsageError, 400, "bad-request"),
    (InvalidRun, 500, "unproven"),
    (Unsupported, 501, "unsupported"),
    (EnvironmentNotReady, 503, "not-ready"),
    (TimeoutError, 504, "no-answer"),
)


def problem(
    status: int,
    kind: str,
    detail: str,
    *,
    fix: str | None = None,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    """One problem document.

    Args:
        status: HTTP status.
        kind: Of ``KINDS``.
        detail: What was expected and what was seen.
        fix: The one line that mends it.
        headers: Of the answer.
        members: Further members, JSON values.
    """
    body = {"type": f"/docs#{kind}", "title": KINDS[kind], "status": status, "detail": detail}
    if fix is not None:
        body["fix"] = fix
    return Response(json.dumps({**body, **members}), status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Let every error of the application become a problem document."""
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _of_http)
    for kind in (LabError, TimeoutError):
        app.add_exception_handler(kind, _of_lab)
    app.add_exception_handler(Exception, _failed)


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [{"pointer": _pointer(_place(one)), "detail": _in_words(one)} for one in error.errors()]
    words = "; ".join(f"{one['pointer']}: {one['detail']}" if one["pointer"] else one["detail"] for one in errors)
    is_json = "json" in request.headers.get("content-type", "")
    fix = "GET /openapi.json says what is expected" if is_json else 'send "Content-Type: application/json"'
    return problem(422, "malformed", words, fix=fix, errors=errors)


def _place(error: Mapping[str, Any]) -> Sequence[str | int]:
    # Of a body that is no JSON it is a position in the text, and names no member.
    where: Sequence[str | int] = error["loc"]
    return where[:1] if error["type"] == "json_invalid" else where


def _in_words(error: Mapping[str, Any]) -> str:
    """What was wrong, in the words of the other problems and not in those of the library that found it."""
    where = tuple(error["loc"][1:])
    match error["type"]:
        case "json_invalid":
            return f"the body is no JSON: {error['ctx']['error']}, at character {where[0]}"
        case "extra_forbidden" if where[:-1] in _MEMBERS:
            return f"unknown member {where[-1]}; known: {', '.join(_MEMBERS[where[:-1]])}"
        case "missing":
            return "this member is missing" if where else "a body was expected, one JSON object"
        case "model_attributes_type" | "model_type" | "dict_type":
            return "a JSON object was expected"
    return str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "expected", 1)


def _pointer(where: Sequence[str | int]) -> str:
    """Where in the body, as a JSON pointer (RFC 6901); path and query keep their names in front."""
    parts = where[1:] if where and where[0] == "body" else where
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = _BY_STATUS.get(error.status_code, "malformed" if error.status_code < 500 else "failed")
    words = f"{request.method} {request.url.path}: {error.detail}"
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods(request))
    return problem(error.status_code, kind, words, fix="GET /docs lists paths and methods", headers=headers)


def _methods(request: Request) -> list[str]:
    """All methods of a path; the framework names those of its first route alone."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    found = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in found for method in route.methods or ()})


async def _of_lab(_: Request, error: Exception) -> Response:
    if isinstance(error, Refusal):
        return problem(error.status, error.kind, error.message, fix=error.fix, **error.facts)
    for kind, status, name in _OF_ERRORS:
        if isinstance(error, kind):
            message, fix = (error.message, error.fix) if isinstance(error, LabError) else (str(error), None)
            return problem(status, name, message, fix=fix)
    return await _failed(_, error)


async def _failed(_: Request, error: Exception) -> Response:
    # What it was is in the log; a stranger learns nothing from it.
    return problem(500, "failed", f"{type(error).__name__}; the controller's log has more.")
