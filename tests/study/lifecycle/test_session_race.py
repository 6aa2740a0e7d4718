import pytest

from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED, Variant
from lab.live.lifecycle.socket import LiveSocket
from lab.study.lifecycle.session_race import run


@pytest.mark.parametrize("receive_first", [False, True])
def test_through_a_whole_session_the_labs_reader_ends_normally_and_the_first_end_stands(receive_first: bool) -> None:
    assert run(LAB, receive_first=receive_first) == (True, True, True)


@pytest.mark.parametrize("variant", [PUBLISHED, REPAIRED])
def test_as_published_the_order_decides_what_its_reader_is_told(variant: Variant) -> None:
    assert run(variant, receive_first=False) == (True, False, False)
    assert run(variant, receive_first=True) == (False, False, False)


@pytest.mark.parametrize("receive_first", [False, True])
def test_a_session_that_says_at_its_close_that_it_is_over_for_good_is_wrong(
    receive_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a close its responses stay open, for a resume."""
    from lab.live.lifecycle.service import Service

    close = Service.close

    async def finishing(service: Service) -> None:
        service.responses.finish()
        await close(service)

    monkeypatch.setattr(Service, "close", finishing)

    assert not run(LAB, receive_first=receive_first).reader_right


def test_an_end_that_is_recorded_over_the_first_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    end = LiveSocket._end

    async def overwriting(socket: LiveSocket, closure: object) -> None:
        socket.recorded = None
        await end(socket, closure)  # type: ignore[arg-type]  # whatever it is

    monkeypatch.setattr(LiveSocket, "_end", overwriting)

    assert not run(LAB, receive_first=True).recorded_first
