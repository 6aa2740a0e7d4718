"""Names have two spellings, and the user's own only theirs."""

import pytest

from lab.live.protocol.names import camel, renamed, snake


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("setup", "setup"),
            ("turn_complete", "turnComplete"),
            ("input_audio_transcription", "inputAudioTranscription"),
        ),
        *(("top_p", "topP"), ("parameters_json_schema", "parametersJsonSchema")),
    ],
)
def test_a_name_goes_both_ways(one: str, other: str) -> None:
    assert (camel(one), camel(other), snake(one), snake(other)) == (other, other, one, one)


@pytest.mark.parametrize("name", ["", "_", "__x", "$ref", "A_B", "a__b"])
def test_a_name_that_is_nobodys_stays_readable(name: str) -> None:
    assert isinstance(camel(name), str)
    assert snake(camel(name)) is not None


def test_free_form_maps_keep_their_names_at_any_depth() -> None:
    schema = {"properties": {"my_slot": {"any_of": [{"max_items": 1}], "default": {"a_b": 1}}}}
    tools = [{"function_declarations": [{"name": "f", "parameters": schema}]}, {"labels": {"my_label": "x"}}]

    assert renamed(tools, camel) == [
        {
            "functionDeclarations": [
                {
                    "name": "f",
                    "parameters": {
                        "properties": {"my_slot": {"anyOf": [{"maxItems": 1}], "default": {"a_b": 1}}},
                    },
                }
            ]
        },
        {"labels": {"my_label": "x"}},
    ]
