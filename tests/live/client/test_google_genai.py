"""The same client on an unmodified google-genai, redirected by environment alone to the lab's server over TLS."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.genai", reason="google-genai is not installed here; see the real clients' environments")
pytest.importorskip("cryptography", reason="the server's certificates need cryptography")

from lab.core.errors import UsageError
from lab.live.client.google_genai import genai_dialer
from lab.live.client.options import Options as ClientOptions
from lab.live.recovery.policy import Policy
from lab.live.server.parts import scripted
from lab.live.server.serving import Options, Serving, serving
from lab.live.session.profile import DEFAULT
from tests.live.client.acting import Acted, acting
from tests.live.client.test_with_server import QUICK

BOOK = {"do": "say", "clip": "book"}
CALLED = {"do": "await", "event": "tool_call"}
SENT = {"do": "await", "event": "result_sent"}
HEARD_OUT = {"do": "await", "event": "turn_complete"}
ABORT = {"do": "drop", "how": "abort"}
ASK = {"do": "ask"}


@contextlib.asynccontextmanager
async def redirected(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, profile: Mapping[str, str] = {}, **options: Any
) -> AsyncIterator[tuple[Serving, Acted]]:
    """A server over TLS, and the assistant on google-genai, which knows of it by the environment."""
    made = DEFAULT.with_(**{**QUICK, **profile})
    wanted = Options(profile=made, host="127.0.0.1", port=None, tls_port=0, ca=folder, seed=1)
    async with serving(wanted, scripted(), tell=lambda *_, **__: None) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"https://127.0.0.1:{server.port('wss')}")
        monkeypatch.delenv("GEMINI_API_KEY", raising=False)
        monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
        async with acting("https://not.there:1", adapter="google-genai", **options) as acted:
            yield server, acted


def test_it_books_answers_and_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with redirected(tmp_path, monkeypatch) as (_, acted):
            await acted.run(BOOK, SENT, HEARD_OUT, ASK)

            assert acted.ok
            assert acted.one("answer")["consistent"]
            assert acted.one("bookings")["count"] == 1
            assert [event.fields["attempt"] for event in acted.named("audio_first")] == [1, 1]

    asyncio.run(scenario())


def test_after_an_abort_it_is_refused_then_accepted_and_the_old_call_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with redirected(tmp_path, monkeypatch) as (_, acted):
            await acted.run(
                {"do": "hold-result"}, BOOK, CALLED, ABORT, {"do": "resume", "at": [0, 1.5]}, {"do": "send-result"},
                SENT, HEARD_OUT, ASK,
            )  # fmt: skip

            refused = acted.one("refused")
            assert (refused["code"], refused["reason"]) == (1011, "Internal error encountered.")
            assert refused["phase"] == "setup"
            assert acted.one("result_sent")["attempt"] == 3
            assert acted.one("answer")["consistent"]

    asyncio.run(scenario())


def test_the_policy_ends_in_a_new_session_that_knows_of_the_booking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        policy = Policy(window_s=0.5, every_s=0.2)
        async with redirected(tmp_path, monkeypatch, profile={"settle_s": "30"}, policy=policy) as (_, acted):
            await acted.run(BOOK, SENT, HEARD_OUT, ABORT, {"do": "recover"}, HEARD_OUT, ASK)

            assert len(acted.named("refused")) >= 2
            assert acted.one("fallback")
            assert acted.one("answer")["consistent"]
            assert acted.one("bookings")["count"] == 1

    asyncio.run(scenario())


def test_its_own_watchdog_stays_quiet_on_a_healthy_silent_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with redirected(tmp_path, monkeypatch) as (_, acted):
            await acted.run({"do": "watch", "for": 3})

            assert acted.named("lost") == []
            assert acted.one("watchdog")["looks"] >= 5

    asyncio.run(scenario())


def test_what_is_said_arrives_as_audio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with redirected(tmp_path, monkeypatch, text=False) as (server, acted):
            await acted.run({"do": "say", "clip": "hello"}, {"do": "watch", "for": 0.2})

            (session,) = server.shell.house.status(now=server.shell.clock.now()).sessions
            assert session.audio_s == pytest.approx(1.1)

    asyncio.run(scenario())


def test_a_close_by_the_server_is_a_loss_with_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_away = {"go_away_after_s": "0.3", "go_away_time_left_s": "0.3"}

    async def scenario() -> None:
        async with redirected(tmp_path, monkeypatch, profile=go_away) as (_, acted):
            await acted.run({"do": "await", "event": "go_away"}, {"do": "await", "event": "lost"})

            assert acted.one("go_away")["time_left_s"] == pytest.approx(0.3)
            assert acted.one("closed")["code"] == 1008
            assert acted.one("lost")["by"] == "closed"

    asyncio.run(scenario())


def test_a_setup_that_the_package_refuses_by_itself_opens_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with redirected(tmp_path, monkeypatch) as (_, acted):
            await acted.run({"do": "connect", "transparent": True, "may_fail": True})

            failed = acted.one("failed")
            assert failed["phase"] == "connect"
            assert "transparent" in failed["error"]
            assert acted.named("connected") == []

    asyncio.run(scenario())


def test_an_attempt_that_is_abandoned_while_its_setup_waits_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with redirected(tmp_path, monkeypatch, profile={"setup_s": "60"}) as (_, acted):
            await acted.run({"do": "connect", "may_fail": True, "timeout": 0.5})

            failed = acted.one("failed")
            assert failed["error"] == "no answer within 0.5 s"
            assert failed["phase"] == "setup"
            assert failed["took_s"] < 2.0

    asyncio.run(scenario())


def test_the_certificate_that_it_is_given_is_trusted_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        wanted = Options(profile=DEFAULT, host="127.0.0.1", port=None, tls_port=0, ca=tmp_path, seed=1)
        async with serving(wanted, scripted(), tell=lambda *_, **__: None) as server:
            monkeypatch.delenv("SSL_CERT_FILE", raising=False)
            monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)
            url = f"https://127.0.0.1:{server.port('wss')}"
            async with acting(url, adapter="google-genai", ca=server.authority) as acted:
                await acted.run({"do": "watch", "for": 0.1})

                assert acted.ok

    asyncio.run(scenario())


def test_an_address_without_tls_is_refused_with_one_that_has_it() -> None:
    with pytest.raises(UsageError, match="TLS alone") as raised:
        genai_dialer(ClientOptions(url="ws://127.0.0.1:8765", adapter="google-genai"))
    assert raised.value.fix is not None
    assert "https://" in raised.value.fix
