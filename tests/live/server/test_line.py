"""How a connection ended is read from what its transport says."""

import errno
import ssl

import pytest

from lab.live.server.line import ending
from lab.live.session.states import Detach


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (None, Detach.FIN),
        (ConnectionResetError(errno.ECONNRESET, "reset"), Detach.RST),
        (BrokenPipeError(errno.EPIPE, "pipe"), Detach.RST),
        (TimeoutError(errno.ETIMEDOUT, "timed out"), Detach.TCP_TIMEOUT),
        (OSError(errno.EHOSTUNREACH, "no route"), Detach.TCP_TIMEOUT),
        (OSError(errno.EIO, "disk"), Detach.NOTHING),
        (TimeoutError("Python's own"), Detach.NOTHING),
        (ssl.SSLError(1, "bad record"), Detach.NOTHING),
        (ValueError("what"), Detach.NOTHING),
    ],
)
def test_an_end_has_its_cause(error: Exception | None, how: Detach) -> None:
    assert ending(error)[0] is how
    assert error is None or ending(error)[1]
