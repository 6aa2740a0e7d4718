"""The first message of every connection."""

from lab.live.protocol.messages import Content, Json, Part, SessionResumption, Setup

BOOK_SLOT: Json = {
    "name": "book_slot",
    "description": "Books a slot. It takes a while; the result comes later.",
    "parameters": {
        "type": "OBJECT",
        "properties": {"slot": {"type": "STRING", "description": "Day and time, such as: tomorrow 3pm"}},
        "required": ["slot"],
    },
}
"""The one tool, as it is declared."""

INSTRUCTION = (
    "You book slots for the user with book_slot. Say shortly what you do. A booking is made when the tool's result "
    "says so, not before."
)


def setup_of(model: str, handle: str | None, *, transparent: bool = False) -> Setup:
    """The setup.

    Args:
        model: Its name.
        handle: The session to resume; None for a new one.
        transparent: Ask for transparent resumption, which only some endpoints know.
    """
    return Setup(
        model=model,
        system_instruction=Content(None, (Part(text=INSTRUCTION),)),
        tools=({"functionDeclarations": [dict(BOOK_SLOT)]},),
        session_resumption=SessionResumption(handle, {"transparent": True} if transparent else {}),
        input_audio_transcription=True,
        output_audio_transcription=True,
        generation_config={"responseModalities": ["AUDIO"]},
    )
