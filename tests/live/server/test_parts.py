"""The program's own parts: a user asks by voice, and the scripted model books."""

import asyncio
import base64
import random
import time
from typing import Any

import pytest
from websockets.asyncio.client import connect

from lab.live.protocol.messages import Setup
from lab.live.server.parts import model, scripted
from lab.live.session.profile import DEFAULT
from lab.live.timelapse import Lapse
from tests.live.server.harness import PROMPT, hear, say, served, url

TOOLS = [{"functionDeclarations": [{"name": "book_slot"}]}]


def test_ids_of_calls_come_from_the_servers_one_source_of_chance() -> None:
    def ids() -> str:
        made = model(DEFAULT, Setup("m", tools=tuple(TOOLS)), random.Random(1))
        made.prompt("Book me the 3pm slot tomorrow, please.", now=0)
        calls = [message.tool_call for message in made.wake(now=5) if message.tool_call]
        return str(calls[0].function_calls[0].id)

    assert ids() == ids()
    assert ids().startswith("function-call-")


def test_a_spoken_request_becomes_a_call_an_announcement_and_a_true_answer() -> None:
    pytest.importorskip("pocketsphinx")
    from lab.live.voice.clips import load

    async def scenario() -> None:
        async with served(PROMPT, made=scripted()) as server, connect(url(server)) as client:
            await say(client, {"setup": {"model": "m", "tools": TOOLS, "outputAudioTranscription": {}}})
            assert "setupComplete" in await hear(client)
            pcm = load("book").pcm + bytes(32_000)
            for start in range(0, len(pcm), 3200):
                data = base64.b64encode(pcm[start : start + 3200]).decode()
                await say(client, {"realtimeInput": {"audio": {"data": data, "mimeType": "audio/pcm;rate=16000"}}})
            server.shell.lapse(Lapse(time.monotonic(), 5))
            call = (await hear(client))["toolCall"]["functionCalls"][0]
            assert call["args"] == {"slot": "tomorrow 3pm"}
            response = {"status": "booked", "slot": "tomorrow 15:00", "confirmation_id": "BK-1001"}
            answer = {"id": call["id"], "name": "book_slot", "response": response}
            await say(client, {"toolResponse": {"functionResponses": [answer]}})
            assert "booked" in (await turn(client)).lower()
            await say(client, {"realtimeInput": {"text": "Did you book it?"}})
            assert "booked" in (await turn(client)).lower()

    asyncio.run(scenario())


async def turn(client: Any) -> str:
    """All words of the model's next turn."""
    words: str = ""
    while True:
        content = (await hear(client)).get("serverContent", {})
        words += str(content.get("outputTranscription", {}).get("text", ""))
        if content.get("turnComplete"):
            return words
