"""What stands in a frame becomes a message and comes out again; what is no message is refused by its field."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.live.protocol import messages as m
from lab.live.protocol.paths import EndpointKind
from lab.live.protocol.wire import ProtocolError, encode, parse_client, parse_server
from tests.live.protocol.strategies import CLIENT, JSON, SERVER


def outcome(parse: Callable[[Any], object], data: str | bytes) -> object:
    try:
        return parse(data)
    except ProtocolError as error:
        return error


@given(CLIENT, st.booleans())
def test_a_clients_message_comes_back_in_either_spelling(message: m.ClientMessage, snake: bool) -> None:
    assert parse_client(encode(message, snake=snake)) == message


@given(SERVER, st.booleans())
def test_a_servers_message_comes_back_in_either_spelling(message: m.ServerMessage, snake: bool) -> None:
    assert parse_server(encode(message, snake=snake)) == message


@given(JSON | st.dictionaries(st.sampled_from(["setup", "clientContent", "realtime_input", "toolResponse"]), JSON))
def test_any_json_is_a_message_or_a_protocol_error(value: Any) -> None:
    for parse in (parse_client, parse_server):
        found = outcome(parse, json.dumps(value))
        assert not isinstance(found, ProtocolError) or (found.close_code == 1007 and found.reason)


@given(st.binary(max_size=30) | st.text(max_size=30))
def test_any_octets_are_a_message_or_a_protocol_error(data: bytes | str) -> None:
    found = outcome(parse_client, data)
    assert not isinstance(found, ProtocolError) or found.reason.startswith(("Invalid JSON payload", "Request contains"))


SETUPS = {
    "camel": '{"setup":{"model":"models/m","generationConfig":{"responseModalities":["AUDIO"],"topP":1},'
    '"systemInstruction":{"parts":[{"text":"be brief"}]},"sessionResumption":{"handle":"h1"},'
    '"inputAudioTranscription":{},"tools":[{"functionDeclarations":[{"name":"book_slot",'
    '"parameters":{"properties":{"the_slot":{"anyOf":[]}}}}]}]}}',
    "snake": '{"setup":{"model":"models/m","generation_config":{"response_modalities":["AUDIO"],"top_p":1},'
    '"system_instruction":{"parts":[{"text":"be brief"}]},"session_resumption":{"handle":"h1"},'
    '"input_audio_transcription":{},"tools":[{"function_declarations":[{"name":"book_slot",'
    '"parameters":{"properties":{"the_slot":{"any_of":[]}}}}]}]}}',
}


@pytest.mark.parametrize("spelling", SETUPS)
def test_both_spellings_of_a_setup_are_one_message(spelling: str) -> None:
    assert parse_client(SETUPS[spelling]) == m.Setup(
        "models/m",
        system_instruction=m.Content(parts=(m.Part("be brief"),)),
        tools=(
            {
                "functionDeclarations": [
                    {"name": "book_slot", "parameters": {"properties": {"the_slot": {"anyOf": []}}}}
                ]
            },
        ),
        session_resumption=m.SessionResumption("h1"),
        input_audio_transcription=True,
        generation_config={"responseModalities": ["AUDIO"], "topP": 1},
    )


def test_a_responses_own_names_stay_as_they_were() -> None:
    response = {"confirmation_id": "BK-1001", "some_map": {"a_b": {"cD": 1}}}
    data = json.dumps({"tool_response": {"function_responses": [{"id": "c1", "name": "f", "response": response}]}})

    message = parse_client(data)

    assert message == m.ToolResponse((m.FunctionResponse("c1", "f", response),))
    assert json.loads(encode(message))["toolResponse"]["functionResponses"][0]["response"] == response


def test_google_genai_mixes_spellings_in_one_frame() -> None:
    data = b'{"realtime_input":{"audio":{"data":"AAE=","mime_type":"audio/pcm;rate=16000"}}}'

    assert parse_client(data) == m.RealtimeInput(audio=m.Blob(b"\0\1", "audio/pcm;rate=16000"))


def test_a_server_may_say_several_things_at_once() -> None:
    data = '{"serverContent":{"turnComplete":true},"usageMetadata":{"totalTokenCount":12},"goAway":{"timeLeft":"9.5s"}}'

    assert parse_server(data) == m.ServerMessage(
        server_content=m.ServerContent(turn_complete=True),
        usage_metadata={"totalTokenCount": 12},
        go_away=m.GoAway(9.5),
    )


@pytest.mark.parametrize(
    "data",
    [
        '{"serverContent":{"turnCompleteReason":"X","modelTurn":{"parts":[{"thought":true}]}},"error":{"code":1}}',
        '{"toolCall":{"functionCalls":[{"id":"c1","name":"f","args":{"a_b":null},"x_y":[1]}]}}',
        '{"sessionResumptionUpdate":{"newHandle":"h","resumable":true,"lastConsumedClientMessageIndex":"7"}}',
        '{"voiceActivity":{"type":"ACTIVITY_START","audioOffset":"1.2s"}}',
        "{}",
    ],
)
def test_what_a_server_says_is_written_back_as_it_came(data: str) -> None:
    assert json.loads(encode(parse_server(data))) == json.loads(data)


def test_a_transcription_setting_is_kept_with_what_it_holds() -> None:
    data = '{"setup":{"model":"m","inputAudioTranscription":{"languageCodes":["en"]}}}'

    message = parse_client(data)

    assert isinstance(message, m.Setup)
    assert message.input_audio_transcription
    assert json.loads(encode(message)) == json.loads(data)


WRONG: dict[str, tuple[str | bytes, str, str]] = {
    "text": ("hello", "", "Invalid JSON payload received. Unexpected token."),
    "binary": (b"\x00\xff\xfe", "", "Invalid JSON payload received. Invalid UTF-8."),
    "list": ("[]", "", "Invalid JSON payload received. Root element must be a message."),
    "nan": ('{"setup":{"model":"m","x":NaN}}', "", "Invalid JSON payload received. Number out of range: NaN"),
    "huge number": ('{"setup":{"x":1e999}}', "", "Invalid JSON payload received. Number out of range: 1e999"),
    "digits": ('{"setup":' + "9" * 5000 + "}", "", "Invalid JSON payload received. Unexpected token."),
    "deep": ('{"setup":' * 100_000, "", "Invalid JSON payload received. Message too deep."),
    "empty": ("{}", "", "Request contains an invalid argument."),
    "unknown message": (
        '{"foo":{}}',
        "foo",
        'Invalid JSON payload received. Unknown name "foo": Cannot find field.',
    ),
    "capitals": (
        '{"Client_Content":{}}',
        "Client_Content",
        'Invalid JSON payload received. Unknown name "Client_Content": Cannot find field.',
    ),
    "two messages": (
        '{"setup":{"model":"m"},"clientContent":{}}',
        "clientContent",
        "Invalid value (oneof), oneof field 'message_type' is already set. Cannot set 'clientContent'",
    ),
    "no model": ('{"setup":{}}', "setup.model", "Request contains an invalid argument."),
    "model's type": ('{"setup":{"model":5}}', "setup.model", "Invalid value at 'setup.model' (TYPE_STRING), 5"),
    "transparent": (
        '{"setup":{"model":"m","sessionResumption":{"transparent":true}}}',
        "setup.session_resumption.transparent",
        "Invalid JSON payload received. Unknown name \"transparent\" at 'setup.session_resumption': Cannot find field.",
    ),
    "a list for one": (
        '{"setup":{"model":"m","sessionResumption":[]}}',
        "setup.session_resumption",
        (
            "Invalid JSON payload received. Unknown name \"session_resumption\" at 'setup': "
            "Proto field is not repeating, cannot start list."
        ),
    ),
    "base64": (
        '{"realtimeInput":{"mediaChunks":[{"data":"AAA="},{"data":"%%"}]}}',
        "realtime_input.media_chunks[1].data",
        "Invalid value at 'realtime_input.media_chunks[1].data' (TYPE_BYTES), Base64 decoding failed for \"%%\"",
    ),
    "truth": (
        '{"clientContent":{"turns":[],"turn_complete":"yes"}}',
        "client_content.turn_complete",
        "Invalid value at 'client_content.turn_complete' (TYPE_BOOL), \"yes\"",
    ),
    "both spellings": (
        '{"clientContent":{"turnComplete":true,"turn_complete":true}}',
        "client_content.turn_complete",
        (
            "Invalid value at 'client_content' (oneof), oneof field 'turn_complete' is already set. "
            "Cannot set 'turn_complete'"
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_by_its_field(case: str) -> None:
    data, field, reason = WRONG[case]

    with pytest.raises(ProtocolError) as caught:
        parse_client(data)

    assert (caught.value.field, caught.value.reason, caught.value.close_code) == (field, reason, 1007)


def test_vertex_knows_a_field_that_the_developer_path_refuses() -> None:
    data = '{"setup":{"model":"m","session_resumption":{"transparent":true}}}'

    message = parse_client(data, kind=EndpointKind.VERTEX)

    assert message == m.Setup("m", session_resumption=m.SessionResumption(extra={"transparent": True}))


@pytest.mark.parametrize("data", ["AAA=", "AAA", "-_8=", "-_8"])
def test_protobufs_other_base64_is_read_as_well(data: str) -> None:
    message = parse_client(json.dumps({"realtimeInput": {"audio": {"data": data, "mimeType": "audio/pcm"}}}))

    assert isinstance(message, m.RealtimeInput)
    assert message.audio is not None
    assert message.audio.data == {"A": b"\0\0", "-": b"\xfb\xff"}[data[0]]


def test_null_is_not_set() -> None:
    assert parse_client('{"setup":{"model":"m","tools":null},"clientContent":null}') == m.Setup("m")


def test_what_has_no_json_is_not_sent() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode(m.ServerMessage(extra={"x": float("inf")}))
