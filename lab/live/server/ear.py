"""Recognition of speech beside the event loop: a thread of its own, and what was heard before is known."""

import asyncio
import hashlib
import sys
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

KNOWN = 256
"""Utterances whose text is remembered: sessions of one test speak the same few clips."""


class Ear:
    """Turns utterances into text.

    Args:
        recognise: Text of PCM, 16 kHz, 16 bits, one channel. Called in the ear's own thread only.
        heard: Called in the event loop with the session's id and the text.
    """

    def __init__(self, recognise: Callable[[bytes], str], heard: Callable[[str, str], None]) -> None:
        self._recognise = recognise
        self._heard = heard
        self._thread = ThreadPoolExecutor(1, "ear")
        self._known: OrderedDict[bytes, str] = OrderedDict()
        self.deaf: str | None = None
        """Why nothing is understood, None while all is well."""

    def take(self, session: str, pcm: bytes) -> None:
        """Find out what was said in a session."""
        loop = asyncio.get_running_loop()

        def deliver(done: "Future[str]") -> None:
            # Nobody listens any more where the loop has ended meanwhile.
            if not done.cancelled() and not loop.is_closed():
                loop.call_soon_threadsafe(self._heard, session, done.result())

        self._thread.submit(self._text, pcm).add_done_callback(deliver)

    def close(self) -> None:
        """Listen no more; what is under way ends unheard."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _text(self, pcm: bytes) -> str:
        key = hashlib.blake2b(pcm, digest_size=16).digest()
        if key not in self._known:
            try:
                self._known[key] = self._recognise(pcm)
            except Exception as error:  # noqa: BLE001 - text input works without a recogniser; its lack is said once
                if self.deaf is None:
                    self.deaf = str(error)
                    sys.stderr.write(f"Speech is not understood: {error}\n")
                return ""
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        return self._known[key]
