import pickle

import pytest

from lab.live.lifecycle import endings
from lab.live.lifecycle.endings import ABNORMAL, Closure, Party

SERVER = Closure(Party.SERVER, 1011, "Internal error encountered.")
US = Closure(Party.US, 1000)
NOBODY = Closure(Party.NETWORK, ABNORMAL)


@pytest.mark.parametrize(
    ("closure", "kind", "says"),
    [
        (SERVER, endings.ClosedByServer, "The server closed the session: 1011 Internal error encountered."),
        (US, endings.ClosedHere, "The session was closed here."),
        (NOBODY, endings.ConnectionLost, "The connection ended without a close frame."),
    ],
)
def test_an_end_is_told_by_who_began_it(closure: Closure, kind: type[Exception], says: str) -> None:
    error = endings.told(closure)

    assert type(error) is kind
    assert error.message == says
    assert error.closure == closure


def test_a_refused_setup_is_told_as_the_servers_close_and_as_the_setups_end() -> None:
    error = endings.refused(SERVER)

    assert isinstance(error, endings.SetupRefused)
    assert isinstance(error, endings.ClosedByServer)
    assert "refused the setup: 1011" in error.message


def test_a_setup_that_nobody_answered_is_no_refusal() -> None:
    assert type(endings.refused(NOBODY)) is endings.ConnectionLost


def test_the_published_word_hides_who_closed() -> None:
    assert endings.unexpected(SERVER).message == "The WebSocket closed unexpectedly, code 1011."


@pytest.mark.parametrize("closure", [SERVER, US, NOBODY])
def test_an_error_survives_its_way_to_another_process(closure: Closure) -> None:
    error = pickle.loads(pickle.dumps(endings.told(closure)))

    assert (type(error), error.closure, str(error)) == (
        type(endings.told(closure)),
        closure,
        str(endings.told(closure)),
    )
