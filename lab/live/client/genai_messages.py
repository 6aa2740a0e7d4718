"""The protocol's messages as google-genai's objects, and back."""

import base64
import json
from typing import Any

from google.genai import types

from lab.live.protocol import wire
from lab.live.protocol.messages import (
    Blob,
    ClientContent,
    ClientMessage,
    Content,
    FunctionResponse,
    RealtimeInput,
    ServerMessage,
    Setup,
    ToolResponse,
)


def config_of(setup: Setup) -> types.LiveConnectConfig:
    """What ``connect()`` takes for a setup.

    Raises:
        ValueError: the package refuses it by itself.
    """
    resumption = setup.session_resumption
    return types.LiveConnectConfig(
        response_modalities=setup.generation_config.get("responseModalities"),
        system_instruction=None if setup.system_instruction is None else _content(setup.system_instruction),
        tools=[types.Tool.model_validate(dict(tool)) for tool in setup.tools],
        session_resumption=None
        if resumption is None
        else types.SessionResumptionConfig(handle=resumption.handle, **resumption.extra),
        input_audio_transcription=types.AudioTranscriptionConfig() if setup.input_audio_transcription else None,
        output_audio_transcription=types.AudioTranscriptionConfig() if setup.output_audio_transcription else None,
    )


async def put(session: Any, message: ClientMessage) -> None:
    """Send a message by the package's method for it.

    Raises:
        TypeError: the package has none.
    """
    match message:
        case RealtimeInput():
            await session.send_realtime_input(**_input(message))
        case ClientContent():
            turns = [_content(turn) for turn in message.turns]
            await session.send_client_content(turns=turns, turn_complete=message.turn_complete)
        case ToolResponse():
            responses = [_response(each) for each in message.function_responses]
            await session.send_tool_response(function_responses=responses)
        case _:
            raise TypeError(f"google-genai sends no {type(message).__name__}.")


def server_message(message: types.LiveServerMessage) -> ServerMessage:
    """What the package has read, as the protocol's message."""
    plain = message.model_dump(mode="python", by_alias=True, exclude_none=True)
    return wire.parse_server(json.dumps(plain, default=_octets))


def _input(message: RealtimeInput) -> dict[str, Any]:
    if message.audio is not None:
        return {"audio": _blob(message.audio)}
    if message.video is not None:
        return {"video": _blob(message.video)}
    if message.text is not None:
        return {"text": message.text}
    if message.activity_start:
        return {"activity_start": types.ActivityStart()}
    if message.activity_end:
        return {"activity_end": types.ActivityEnd()}
    return {"audio_stream_end": message.audio_stream_end}


def _blob(blob: Blob) -> types.Blob:
    return types.Blob(data=blob.data, mime_type=blob.mime_type)


def _content(content: Content) -> types.Content:
    return types.Content(role=content.role, parts=[types.Part(text=part.text) for part in content.parts])


def _response(response: FunctionResponse) -> types.FunctionResponse:
    return types.FunctionResponse(id=response.id, name=response.name, response=dict(response.response))


def _octets(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"google-genai gave a {type(value).__name__}.")
