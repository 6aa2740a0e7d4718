"""Connect, speak, be called, answer, be told: a session on which nothing is lost.

usage: speak.py CLIP    a WAV file, 16 kHz, 16 bits, mono
"""

import asyncio
import sys
import wave

from conversation import QUESTION, Conversation, connected, say
from google.genai import types

CHUNK_S = 0.1


async def speak(talk: Conversation, path: str) -> None:
    """Send the clip in real time, as a microphone would, and the silence after it."""
    with wave.open(path) as clip:
        rate = clip.getframerate()
        pcm = clip.readframes(clip.getnframes())
    pcm += bytes(2 * rate)  # a second, so that the end of the speech is heard
    step = 2 * int(rate * CHUNK_S)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number, start in enumerate(range(0, len(pcm), step)):
        await asyncio.sleep(began + number * CHUNK_S - loop.time())
        blob = types.Blob(data=pcm[start : start + step], mime_type=f"audio/pcm;rate={rate}")
        await talk.session.send_realtime_input(audio=blob)
    say("spoken", seconds=len(pcm) / 2 / rate)


async def main() -> None:
    """One booking, from the spoken request to the answer to the question."""
    async with connected() as talk:
        speaking = asyncio.create_task(speak(talk, sys.argv[1]))
        call = await talk.until("tool_call")
        await speaking
        await talk.respond(call)
        await talk.until("turn")
        say("answer", text=await talk.answer_to(QUESTION))
    say("done")


asyncio.run(main())
