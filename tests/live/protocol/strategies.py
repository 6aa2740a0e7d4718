"""Any message of the protocol."""

from typing import Any

from hypothesis import strategies as st

from lab.live.protocol import messages as m

TEXT = st.text(max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
FREE = st.dictionaries(TEXT, JSON, max_size=3)

EXTRA = st.dictionaries(st.sampled_from(["x_news", "xNews", "futureField", "languageCode"]), JSON, max_size=2)
"""Names that no message here has."""

TOOLS = st.lists(
    st.fixed_dictionaries(
        {
            "functionDeclarations": st.lists(
                st.fixed_dictionaries(
                    {
                        "name": TEXT,
                        "parameters": st.fixed_dictionaries(
                            {"type": st.just("OBJECT"), "properties": st.dictionaries(TEXT, st.just({"anyOf": []}))}
                        ),
                    }
                ),
                max_size=2,
            )
        }
    ),
    max_size=2,
).map(tuple)

CONFIG = st.dictionaries(st.sampled_from(["responseModalities", "topP", "speechConfig"]), SCALARS, max_size=3)

BLOB = st.builds(m.Blob, st.binary(max_size=40), TEXT, EXTRA)
PART = st.builds(m.Part, st.none() | TEXT, st.none() | BLOB, EXTRA)
CONTENT = st.builds(m.Content, st.none() | TEXT, st.lists(PART, max_size=2).map(tuple), EXTRA)
RESUMPTION = st.builds(m.SessionResumption, st.none() | TEXT, EXTRA)
SETUP = st.builds(
    m.Setup,
    *(TEXT, st.none() | CONTENT, TOOLS, st.none() | RESUMPTION),
    *(st.booleans(), st.booleans(), CONFIG, CONFIG, EXTRA),
)
RESPONSE = st.builds(m.FunctionResponse, st.none() | TEXT, TEXT, FREE, EXTRA)
CLIENT = st.one_of(
    SETUP,
    st.builds(m.ClientContent, st.lists(CONTENT, max_size=2).map(tuple), st.booleans(), EXTRA),
    st.builds(
        m.RealtimeInput,
        *(st.none() | BLOB, st.none() | BLOB, st.none() | TEXT),
        *(st.booleans(), st.booleans(), st.booleans(), st.lists(BLOB, max_size=2).map(tuple), EXTRA),
    ),
    st.builds(m.ToolResponse, st.lists(RESPONSE, max_size=2).map(tuple), EXTRA),
    st.builds(m.ContextUpdate, st.none() | CONTENT, TOOLS, EXTRA),
)

SPOKEN = st.builds(m.Transcription, TEXT, st.booleans(), EXTRA)
CALL = st.builds(m.FunctionCall, st.none() | TEXT, TEXT, FREE, EXTRA)
INT64 = st.integers(-(2**63), 2**63 - 1)
SECONDS = st.integers(0, 10**13).map(lambda microseconds: microseconds / 1e6)
SERVER = st.builds(
    m.ServerMessage,
    st.none() | st.builds(m.SetupComplete, st.none() | TEXT, EXTRA),
    st.none() | st.builds(m.SessionResumptionUpdate, st.none() | TEXT, st.booleans(), st.none() | INT64, EXTRA),
    st.none()
    | st.builds(
        m.ServerContent,
        *(st.none() | CONTENT, st.booleans(), st.booleans(), st.booleans()),
        *(st.none() | SPOKEN, st.none() | SPOKEN, EXTRA),
    ),
    st.none() | st.builds(m.ToolCall, st.lists(CALL, max_size=2).map(tuple), EXTRA),
    st.none() | st.builds(m.ToolCallCancellation, st.lists(TEXT, max_size=3).map(tuple), EXTRA),
    st.none() | st.builds(m.GoAway, st.none() | SECONDS, EXTRA),
    st.none() | st.dictionaries(st.sampled_from(["promptTokenCount", "totalTokenCount"]), SCALARS),
    st.none() | st.dictionaries(st.sampled_from(["type", "audioOffset"]), SCALARS),
    EXTRA,
)
