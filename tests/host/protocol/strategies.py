"""Any message of the set."""

from hypothesis import strategies as st

from lab.host.protocol import messages as m
from lab.host.protocol.codec import ANSWERS, ASKS, EVENTS

TEXT = st.text(max_size=20)
IDS = st.text(min_size=1, max_size=8)

_UNREAD = ("function_tools_executed", "overlapping_speech", "debug_message", "tool_execution_updated")

uint32 = st.integers(0, 2**32 - 1)


def _frames(kind: type[m.AudioFrame]) -> st.SearchStrategy[m.AudioFrame]:
    return st.builds(kind, st.binary(max_size=64), uint32, uint32, uint32)


ITEMS = st.builds(
    m.ChatItem,
    st.none()
    | st.builds(
        m.ChatMessage,
        TEXT,
        st.sampled_from(m.ChatRole),
        st.lists(st.builds(m.ChatContent, TEXT), max_size=3).map(tuple),
        st.booleans(),
    ),
)
_MANY = st.lists(ITEMS, max_size=3).map(tuple)

EVENT_BODIES = st.one_of(
    st.builds(m.ItemAdded, st.none() | ITEMS),
    *(st.from_type(kind) for kind in EVENTS.values() if kind is not m.ItemAdded),
    st.builds(m.Unread, st.sampled_from(_UNREAD)),
)
ASKED = st.one_of(*(st.from_type(kind) for kind in ASKS.values()))
ANSWERED = st.one_of(
    st.builds(m.ChatHistory, _MANY),
    st.builds(m.RunResult, _MANY),
    st.builds(m.AgentInfo, TEXT, st.none() | TEXT, st.lists(TEXT, max_size=3).map(tuple), _MANY),
    *(st.from_type(kind) for kind in ANSWERS.values() if kind not in {m.ChatHistory, m.RunResult, m.AgentInfo}),
)

MESSAGES = st.one_of(
    _frames(m.AudioInput),
    _frames(m.AudioOutput),
    st.builds(m.Event, EVENT_BODIES),
    st.builds(m.Request, IDS, ASKED),
    st.builds(m.Response, IDS, st.none() | ANSWERED, st.none() | TEXT),
    st.sampled_from([m.PlaybackFlush(), m.PlaybackClear(), m.PlaybackFinished()]),
)
