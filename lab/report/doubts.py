"""What in a record speaks against its own outcome: a second look, made from the record alone.

The run decides the outcome. A report that repeats it without looking would also repeat a mistake.
"""

from collections.abc import Iterator

from lab.core.fault import Cut
from lab.core.verdict import DATED_WITHIN_S
from lab.report.record import Branch, Cause, EndObservation, Outcome, Record
from lab.report.units import seconds, window


def doubts(record: Record) -> tuple[str, ...]:
    """Sentences on what contradicts a confirmation; none where the outcome is another one, or nothing does."""
    if record.outcome is not Outcome.CONFIRMED:
        return ()
    client, server = record.observation.client, record.observation.server
    return tuple(_of_run(record)) + tuple(
        f"{end}: {sentence}"
        for end, said, seen, peer in (
            ("client", record.prediction.client, client, server),
            ("server", record.prediction.server, server, client),
        )
        if not _reset_after_heal(seen, peer, record.fault.healed_s)
        if not _reset_by_the_open_way(end, seen, record)
        for sentence in (*_of_end(said.branch, seen, record), *_of_orphan(said.orphan, seen, record))
    )


def _of_run(record: Record) -> Iterator[str]:
    if record.interrupted:
        yield "the run was interrupted"
    if record.fault.cut_at is None:
        yield "nothing was cut"
    if record.prediction.client.branch is None and record.prediction.server.branch is None:
        yield "no prediction applied to either end"
    if record.observation.bystander.alive is not True:
        yield "the bystander is not known to have lived"
    if record.observation.bystander.lost:
        yield f"the bystander lost {record.observation.bystander.lost} segments"
    crossed = record.observation.crossed
    came = {"segments": crossed.segments, "RST": crossed.rst, "FIN": crossed.fin, "ICMP": crossed.icmp}
    through = [f"{number} {what}" for what, number in came.items() if number]
    if through:
        yield f"through the hole came {', '.join(through)}"


def _of_end(branch: Branch | None, seen: EndObservation, record: Record) -> Iterator[str]:
    if branch is None:
        return
    if seen.gave_up_s is not None and not _within(seen.gave_up_s, branch.window_s, seen.gave_up_within_s or 0.0):
        yield f"gave up at {seconds(seen.gave_up_s)}, predicted {window(branch.window_s)}"
    if seen.gave_up_s is not None and seen.cause is not None and seen.cause is not branch.cause:
        yield f"gave up by {seen.cause.value}, predicted {branch.cause.value}"
    healed_s = record.fault.healed_s
    if healed_s is not None and branch.window_s is not None and healed_s <= branch.window_s[1]:
        return  # What was predicted is without the heal.
    missed = branch.window_s is not None and record.horizon_s is not None and branch.window_s[1] <= record.horizon_s
    if seen.gave_up_s is None and seen.recovered_s is None and seen.closed_s is None and missed:
        yield f"did not give up, predicted {window(branch.window_s)}"
    sent = seen.copies_until_closed
    if branch.copies is not None and sent is not None:
        low, high = branch.copies
        # Fewer copies are no contradiction while the end still lives: more may come.
        if sent > high or (seen.gave_up_s is not None and sent < low):
            yield f"{sent} copies, predicted {low} to {high}"


def _of_orphan(branch: Branch | None, seen: EndObservation, record: Record) -> Iterator[str]:
    """What contradicts the prediction of a socket that its program closed."""
    orphan, horizon_s = seen.orphan, record.horizon_s
    if branch is None or branch.window_s is None or orphan is None:
        return
    if orphan.gone_s is None:
        if horizon_s is not None and branch.window_s[1] <= horizon_s - DATED_WITHIN_S:
            yield f"its orphan was still there at the end, predicted to go {window(branch.window_s)}"
        return
    if not _within(orphan.gone_s, branch.window_s, orphan.gone_within_s or 0.0):
        yield f"its orphan was gone at {seconds(orphan.gone_s)}, predicted {window(branch.window_s)}"
    if orphan.cause is not None and orphan.cause is not branch.cause:
        yield f"its orphan ended by {orphan.cause.value}, predicted {branch.cause.value}"


def _reset_after_heal(seen: EndObservation, peer: EndObservation, healed_s: float | None) -> bool:
    """Whether the path came back to a peer that had ended: its RST ends this end too, whatever was predicted."""
    ends = [at for at in (peer.gave_up_s, peer.closed_s) if at is not None]
    if healed_s is None or seen.gave_up_s is None or seen.cause is not Cause.RESET:
        return False
    return healed_s <= seen.gave_up_s and any(at < healed_s for at in ends)


def _reset_by_the_open_way(end: str, seen: EndObservation, record: Record) -> bool:
    """Whether the other end's RST came by the direction that was not cut."""
    open_towards = {Cut.FORWARD: "client", Cut.RETURN: "server"}
    return (
        seen.cause is Cause.RESET
        and record.fault.direction in open_towards
        and (open_towards[record.fault.direction] == end)
    )


def _within(value: float, span: tuple[float, float] | None, slack: float) -> bool:
    return span is not None and span[0] - slack <= value <= span[1] + slack
