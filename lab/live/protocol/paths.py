"""Under which paths clients look for the service, and what each says about them."""

import enum
import re
from dataclasses import dataclass


class EndpointKind(enum.Enum):
    """Which door of the service a client came by."""

    DEVELOPER = "developer"
    """With an API key."""

    CONSTRAINED = "constrained"
    """With a short-lived token."""

    VERTEX = "vertex"
    FIREBASE = "firebase"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a path says."""

    kind: EndpointKind
    version: str
    """``v1``, ``v1beta``, ``v1alpha``, or any other."""

    location: str | None = None
    """Firebase's Vertex backend names a place, such as ``us-central1``."""


_VERSION = r"(?P<version>[A-Za-z0-9]+)"

_FORMS = (
    (
        # google-genai, Python and JavaScript; the latter asks for //ws/...
        re.compile(
            rf"google\.ai\.generativelanguage\.{_VERSION}\.GenerativeService\.BidiGenerateContent(?P<token>Constrained)?"
        ),
        EndpointKind.DEVELOPER,
    ),
    (
        re.compile(rf"google\.cloud\.aiplatform\.{_VERSION}\.LlmBidiService/BidiGenerateContent"),
        EndpointKind.VERTEX,
    ),
    (
        re.compile(rf"google\.firebase\.vertexai\.{_VERSION}\.GenerativeService/BidiGenerateContent"),
        EndpointKind.FIREBASE,
    ),
    (
        re.compile(
            rf"google\.firebase\.vertexai\.{_VERSION}\.LlmBidiService/BidiGenerateContent"
            r"/locations/(?P<location>[A-Za-z0-9-]+)"
        ),
        EndpointKind.FIREBASE,
    ),
)


def find(path: str) -> Endpoint | None:
    """What a request's path means, None where no client looks for a service there.

    Args:
        path: As requested, with its query (which may hold a key: it is not looked at) and any prefix.
    """
    plain = path.partition("?")[0]
    _, mark, rest = plain.rpartition("/ws/")
    if not mark:
        return None
    for form, kind in _FORMS:
        if found := form.fullmatch(rest):
            groups = found.groupdict()
            meant = EndpointKind.CONSTRAINED if groups.get("token") else kind
            return Endpoint(meant, groups["version"], groups.get("location"))
    return None


def developer(version: str = "v1beta") -> str:
    """The path that a client with an API key asks for."""
    return f"/ws/google.ai.generativelanguage.{version}.GenerativeService.BidiGenerateContent"
