"""A server in a hurry, and rows as they were predicted."""

from dataclasses import replace

from lab.live.lifecycle import LAB, REPAIRED, VARIANTS
from lab.live.lifecycle.endpoints import ENDPOINTS, Endpoint
from lab.live.session.profile import Handles, OldCall
from lab.study.lifecycle import closes, predictions, race, rules, ways
from lab.study.lifecycle.closes import CloseRow
from lab.study.lifecycle.leaks import LeakRow, Repeated
from lab.study.lifecycle.limit import LimitRow
from lab.study.lifecycle.race import RaceRow
from lab.study.lifecycle.rules import RulesRow
from lab.study.lifecycle.tables import Tables

DEADLINE_S = 10.0

_NAMED = ENDPOINTS["developer-newer"]
HURRIED: Endpoint = replace(
    _NAMED,
    server=_NAMED.server.with_(setup_s=0.1, resume_setup_s=0.05, refusal_s=0.02, settle_s=0.05, silence_close_s=20.0),
)
"""Whose sets-up, refusals and silence take a moment."""

RUNS = 100


def leak(variant: str, profile: str, path: str) -> LeakRow:
    closes_it = VARIANTS[variant].closes_on_release or path in predictions.CLOSING
    limit_s = round(ENDPOINTS[profile].server.silence_close_s)
    stays = path in ways.OPEN_STREAM or not closes_it
    return LeakRow(
        variant,
        profile,
        path,
        closed_in_s=0.02 if closes_it else None,
        how="close frame" if closes_it else "",
        server_limit_s=None if closes_it or path in ways.SILENT else limit_s,
        stream_finished=None if path == ways.EXIT else not stays,
        stream_failed=None if path == ways.EXIT else False,
        stream_ended_in_s=None if path == ways.EXIT or stays else 0.03,
        is_closed=ways.SAID[path],
        service_kept=None if path == ways.EXIT else path in ways.HELD or not closes_it,
        service_gone_in_s=0.03 if closes_it and path not in ways.HELD else None,
        socket="none" if closes_it else "established",
        socket_over_in_s=0.04 if closes_it else None,
        ok=closes_it,
    )


def limited(variant: str, profile: str) -> LimitRow:
    limit = ENDPOINTS[profile].server.concurrent_limit
    assert limit is not None
    leaks = not VARIANTS[variant].closes_on_release
    refused = leaks and limit < 8
    said = "UnexpectedClosure: The WebSocket closed unexpectedly, code 1011." if refused else ""
    counted = min(limit, 8) if leaks else 0
    return LimitRow(variant, profile, limit, 8, limit + 1 if refused else None, said, counted, not refused)


def raced(variant: str, order: str) -> RaceRow:
    if VARIANTS[variant].first_end_counts:
        return RaceRow(variant, order, 4, 4, 4, 4, ok=True)
    if order in (race.CLOSE_FIRST, race.CLOSE_FIRST_SESSION):
        return RaceRow(variant, order, 1, 1, 0, 0, ok=False)
    if order in (race.RECEIVE_FIRST, race.RECEIVE_FIRST_SESSION):
        return RaceRow(variant, order, 1, 0, 0, 0, ok=False)
    if order == race.AT_RANDOM:
        return RaceRow(variant, order, 10_000, 6662, 2725, 2725, ok=False)
    return RaceRow(variant, order, 4, 3, 0, 0, ok=False)


def closed(client: str, end: closes.End) -> CloseRow:
    variant = VARIANTS[client]
    bare = CloseRow(
        client, end.phase, end.how, end.code or variant.close_code, end.by.value, "", "", "", is_closed=True, ok=True
    )
    connect, reader, sender, is_closed = predictions.told(variant, bare)
    return replace(bare, connect=connect, reader=reader, sender=sender, is_closed=is_closed, ok=variant is LAB)


def ruled(endpoint: Endpoint) -> RulesRow:
    server = endpoint.server
    old_call = rules.IGNORED if server.old_call is OldCall.IGNORE else rules.ACCEPTED
    without = int(server.handles is Handles.MANY)
    return RulesRow(endpoint.name, endpoint.path, "v1beta", 1, without, old_call, ok=True)


def predicted() -> Tables:
    """All tables as they should come out."""
    return Tables(
        leaks=[leak(variant, profile, path) for variant in VARIANTS for profile in ENDPOINTS for path in ways.PATHS],
        repeated=[
            Repeated(variant.name, profile, RUNS, RUNS, 0.12, ok=True)
            for variant in (REPAIRED, LAB)
            for profile in ENDPOINTS
        ],
        limit=[limited(variant, profile) for variant in VARIANTS for profile in ENDPOINTS],
        race=[raced(variant, order) for variant in VARIANTS for order in race.ORDERS],
        closes=[closed(client, end) for client in VARIANTS for end in closes.ends()],
        rules=[ruled(endpoint) for endpoint in ENDPOINTS.values()],
        repeats=RUNS,
    )
