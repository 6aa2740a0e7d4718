"""Four servers as data: the two endpoints of the published table, each with an older and a newer model.

The table (firebase-ios-sdk pull request 17045) ran one test against each; what differs between them and is known
follows here, each with where it was seen. What is not known stays the default profile's, which is the study's. Which
models that table had is not known here: the older one stands for those that reports call 2.5, the newer one for the
study's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lab.live.protocol.messages import SessionResumption, Setup
from lab.live.session.profile import DEFAULT, Handles, OldCall, Profile


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server and how a client asks for it."""

    name: str
    path: str
    """Of the upgrade's request."""

    model: str
    """As this endpoint writes a model's name."""

    server: Profile
    """Its rules."""

    sources: tuple[str, ...]
    """Where its path and rules were seen."""

    def setup(self, *, resumable: bool = True) -> Setup:
        """The first message of a connection.

        Args:
            resumable: Ask for handles. A session without one is over with its connection.
        """
        return Setup(
            self.model,
            session_resumption=SessionResumption() if resumable else None,
            generation_config={"responseModalities": ["AUDIO"]},
            output_audio_transcription=True,
        )


_DEVELOPER = "/ws/google.firebase.vertexai.v1beta.GenerativeService/BidiGenerateContent"
_PLATFORM = "/ws/google.firebase.vertexai.v1beta.LlmBidiService/BidiGenerateContent/locations/us-central1"

_OLDER, _NEWER = "gemini-2.5-flash-live", "gemini-3.8-live"

_IGNORED = "old call ids ignored: pipecat pull request 5497 and pydantic-ai's comments, both about 2.5 models"
_STUDY = "old call ids accepted, one handle per connection: the published test series (gemini-3.8-live)"
_MANY = "a handle with every turn: reports of Vertex users"
_FREE = "three sessions at once: a forum thread about the free tier"
_PAID = "a thousand sessions at once: the platform's documentation"
_PATHS = "path, and the model's name in it: @firebase/ai's requests"


def _developer(name: str, model: str, old_call: OldCall, *sources: str) -> Endpoint:
    about = f"The developer endpoint with {model}."
    rules = DEFAULT.with_(name=name, description=about, concurrent_limit=3, old_call=old_call.value)
    return Endpoint(name, _DEVELOPER, f"projects/lab/models/{model}", rules, (_PATHS, _FREE, *sources))


def _platform(name: str, model: str, old_call: OldCall, *sources: str) -> Endpoint:
    about = f"The agent platform's endpoint with {model}."
    rules = DEFAULT.with_(
        name=name, description=about, concurrent_limit=1000, handles=Handles.MANY.value, old_call=old_call.value
    )
    named = f"projects/lab/locations/us-central1/publishers/google/models/{model}"
    return Endpoint(name, _PLATFORM, named, rules, (_PATHS, _PAID, _MANY, *sources))


ENDPOINTS: Mapping[str, Endpoint] = MappingProxyType(
    {
        endpoint.name: endpoint
        for endpoint in (
            _developer("developer-older", _OLDER, OldCall.IGNORE, _IGNORED),
            _developer("developer-newer", _NEWER, OldCall.ACCEPT, _STUDY),
            _platform("agent-platform-older", _OLDER, OldCall.IGNORE, _IGNORED),
            _platform("agent-platform-newer", _NEWER, OldCall.ACCEPT, f"{_STUDY}, there on the developer endpoint"),
        )
    }
)
"""Every endpoint by its name."""
