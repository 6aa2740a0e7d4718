import asyncio
import threading

import pytest

from lab.live.lifecycle.stream import Stream

DEADLINE_S = 5.0


class Ended(Exception):
    pass


def run(stream: Stream[int], reads: int) -> list[int | str]:
    """What so many reads give: an item, ``end``, ``error``, or ``nothing``, which only a stream that waits gives."""

    async def read() -> list[int | str]:
        found: list[int | str] = []
        for _ in range(reads):
            reading = asyncio.ensure_future(anext(stream))
            for _ in range(5):
                await asyncio.sleep(0)
            if not reading.done():
                reading.cancel()
                found.append("nothing")
                continue
            error = reading.exception()
            found.append(reading.result() if error is None else _named(error))
        return found

    return asyncio.run(read())


def _named(error: BaseException) -> str:
    # A StopAsyncIteration of a task comes as a RuntimeError.
    return "error" if isinstance(error, Ended) else "end"


def test_what_came_is_given_in_order_and_then_it_waits() -> None:
    stream: Stream[int] = Stream()
    stream.put(1)
    stream.put(2)

    assert run(stream, 3) == [1, 2, "nothing"]


def test_an_error_comes_behind_what_came_and_stays() -> None:
    stream: Stream[int] = Stream()
    stream.put(1)
    stream.fail(Ended)
    stream.put(2)

    assert run(stream, 3) == [1, "error", "error"]


def test_the_first_error_counts() -> None:
    stream: Stream[int] = Stream()
    stream.fail(Ended)
    stream.fail(ValueError)

    assert isinstance(stream.error, Ended)


def test_opened_again_it_gives_what_comes() -> None:
    stream: Stream[int] = Stream()
    stream.fail(Ended)
    stream.reopen()
    stream.put(3)

    assert run(stream, 2) == [3, "nothing"]


def test_finished_it_tells_an_untold_error_once_and_is_at_its_end_for_good() -> None:
    stream: Stream[int] = Stream()
    stream.fail(Ended)
    stream.finish()
    stream.put(4)

    assert run(stream, 3) == ["error", "end", "end"]


def test_a_reader_that_waits_is_told_of_the_end() -> None:
    async def scenario() -> None:
        stream: Stream[int] = Stream()

        async def read() -> list[int]:
            return [item async for item in stream]

        reader = asyncio.ensure_future(read())
        await asyncio.sleep(0)
        stream.put(1)
        stream.finish()
        async with asyncio.timeout(DEADLINE_S):
            assert await reader == [1]

    asyncio.run(scenario())


def test_a_reader_that_waits_is_told_of_an_end_that_comes_in_another_thread() -> None:
    """In asyncio's debug mode: there a loop says so that is touched from another thread."""

    async def scenario() -> None:
        stream: Stream[int] = Stream()
        reader = asyncio.ensure_future(anext(stream, None))
        await asyncio.sleep(0)
        thread = threading.Thread(target=stream.finish)
        thread.start()
        thread.join()
        async with asyncio.timeout(DEADLINE_S):
            assert await reader is None

    asyncio.run(scenario(), debug=True)


def test_an_end_that_comes_while_a_reader_begins_to_wait_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stream: Stream[int] = Stream()
        loop = asyncio.get_running_loop()
        make = loop.create_future

        def made_meanwhile() -> "asyncio.Future[None]":
            stream.finish()
            return make()

        monkeypatch.setattr(loop, "create_future", made_meanwhile)
        with pytest.raises(StopAsyncIteration):
            stream.__anext__().send(None)

    asyncio.run(scenario())


def test_what_is_dropped_is_not_given() -> None:
    stream: Stream[int] = Stream()
    stream.put(1)
    stream.clear()

    assert run(stream, 1) == ["nothing"]


def test_an_error_is_made_anew_for_each_read() -> None:
    """One exception raised again and again would gather the frames of all its readers."""
    stream: Stream[int] = Stream()
    stream.fail(Ended)

    first, second = stream.error, stream.error
    assert first is not second
    with pytest.raises(Ended):
        asyncio.run(stream.__anext__())
