import asyncio
import logging

import pytest

from lab.live.lifecycle.endings import NotConnected, SessionError
from lab.live.lifecycle.outgoing import Outgoing


def no() -> SessionError:
    return NotConnected("No.")


def test_messages_are_written_in_order_and_whoever_asked_is_told() -> None:
    async def scenario() -> None:
        outgoing, wrote = Outgoing(), []

        async def send(data: bytes) -> None:
            wrote.append(data)

        answer = asyncio.get_running_loop().create_future()
        outgoing.put(b"1", None)
        outgoing.put(b"2", answer)
        writing = asyncio.ensure_future(outgoing.write(send))
        async with asyncio.timeout(5):
            await answer
        writing.cancel()

        assert wrote == [b"1", b"2"]

    asyncio.run(scenario())


def test_a_message_that_cannot_be_written_is_told_to_its_sender_and_the_next_is_tried() -> None:
    async def scenario() -> None:
        outgoing = Outgoing()
        answers = [asyncio.get_running_loop().create_future() for _ in range(2)]

        async def send(_: bytes) -> None:
            raise no()

        for answer in answers:
            outgoing.put(b"", answer)
        writing = asyncio.ensure_future(outgoing.write(send))
        async with asyncio.timeout(5):
            told = await asyncio.gather(*answers, return_exceptions=True)
        writing.cancel()

        assert [type(error) for error in told] == [NotConnected, NotConnected]

    asyncio.run(scenario())


def test_a_message_that_nobody_asks_about_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        outgoing = Outgoing()
        outgoing.put(b"", None)
        with caplog.at_level(logging.WARNING):
            outgoing.refuse(no)

    asyncio.run(scenario())

    assert caplog.messages == ["A message was not sent: No."]


def test_refused_while_it_is_being_written_a_message_is_told_once() -> None:
    async def scenario() -> None:
        outgoing, taken = Outgoing(), asyncio.Event()
        answer = asyncio.get_running_loop().create_future()

        async def send(_: bytes) -> None:
            taken.set()
            await asyncio.Event().wait()

        outgoing.put(b"", answer)
        writing = asyncio.ensure_future(outgoing.write(send))
        await taken.wait()
        outgoing.refuse(no)
        writing.cancel()

        with pytest.raises(NotConnected):
            await answer

    asyncio.run(scenario())
