"""Whether a session can be believed: what must have happened for its quantities to mean anything.

As with a run of the lab, a session that cannot prove itself is INVALID, which is neither a pass nor a failure.
"""

from collections.abc import Iterator

from lab.study.ranges import LAPSED_MEDIAN_S, LAPSED_MOST_S, MACHINE_S
from lab.study.reading import HEALS, Observed, Reading, Said, reading_of
from lab.study.scenario import Loss

TOLD_WITHIN_S = 1.0
"""Wall seconds from the client's own end of a connection to the server's notice of it."""

TIMED_OUT = "TCP timeout"
"""How the server calls an end that its own kernel made."""


def doubts(seen: Observed) -> tuple[str, ...]:
    """Why the session proves nothing; empty where it does."""
    of = reading_of(seen)
    lost = (*_unfinished(of), *_never_lost(of), *_told(of), *_untold(of))
    return (*lost, *_unasked(of), *_miscounted(of), *lateness(seen))


def lateness(seen: Observed) -> tuple[str, ...]:
    """Those of the doubts that the machine is to blame for, so that another try may be without them."""
    of = reading_of(seen)
    return (*_late(of), *_late_in_lapses(of), *_obeyed_late(of))


def defect(seen: Observed) -> str | None:
    """What went wrong inside a program that went on, None where nothing did: no busy machine explains it."""
    for who, told in (("assistant", seen.assistant), ("server", seen.server)):
        for each in told:
            if each["event"] == "defect":
                return f"the {who} met a defect: {each.get('error')}"
    return None


def stuck(seen: Observed) -> str | None:
    """At which step the script went no further, None where it came to its end."""
    for each in reading_of(seen).named("stuck"):
        return f"step {each['step']} ({each['do']}): {each['why']}"
    return None


def _unfinished(of: Reading) -> Iterator[str]:
    if of.first("done") is None:
        yield "the assistant did not come to the end of its script"
    if of.first("bookings") is None:
        yield "the assistant did not count its bookings"
    if not of.seen.server:
        yield "the server told nothing"
    if untold := sum(int(each["events"]) for each in _server(of, "untold")):
        yield f"{untold} events of the server's found no room"


def _never_lost(of: Reading) -> Iterator[str]:
    if of.seen.loss is not Loss.NONE and not of.episodes() and not of.named("stuck"):
        yield "the connection was never lost"


def _told(of: Reading) -> Iterator[str]:
    """A loss is silent only if the server goes on believing in the connection, until somebody ends that."""
    if not of.seen.loss.silent:
        return
    for loss, following in of.episodes():
        mended = next((each for each in of.named("mark", after=loss) if each.get("name") in HEALS), None)
        ends = (mended, of.first("done"), following)
        until = min((float(each["at"]) for each in ends if each is not None), default=float("inf"))
        since = float(loss["at"])
        own = min(
            (float(each["at"]) for each in _server(of, "closed") if each.get("because") == "silence"), default=until
        )
        for detach in _detached(of, before=since):
            if since <= float(detach["at"]) < min(until, own) and detach.get("how") != TIMED_OUT:
                yield f"the loss was not silent: the server saw the connection end ({detach.get('how')})"


def _untold(of: Reading) -> Iterator[str]:
    """A client that ends its connection is heard, as far as nothing is in between."""
    if of.seen.loss not in (Loss.ABORT, Loss.CLOSE):
        return
    for loss, _ in of.episodes():
        at = float(loss["at"])
        if not any(at - 0.1 <= float(each["at"]) <= at + TOLD_WITHIN_S for each in _detached(of, before=at)):
            yield f"the server did not see the connection end within {TOLD_WITHIN_S:g} s"


def _unasked(of: Reading) -> Iterator[str]:
    """The assistant's word for an answer is not enough: the server must have had the question by then."""
    typed = [(str(each.get("text")), float(each["at"])) for each in _server(of, "typed")]
    for answer in of.named("answer") if of.seen.server else ():
        asked = answer.get("asked")
        before = [each for each in typed if each[0] == asked and each[1] <= float(answer["at"])]
        if not before:
            yield f"the assistant tells of an answer, and the server was never asked {asked!r}"
            return
        typed.remove(before[0])


def _miscounted(of: Reading) -> Iterator[str]:
    """Nor is it for the bookings, where their file can be read."""
    counted = [int(each["count"]) for each in of.named("bookings")[-1:]]
    if of.seen.stored is not None and counted and counted != [of.seen.stored]:
        yield f"the assistant counted {counted[0]} bookings, and its file holds {of.seen.stored}"


def _late(of: Reading) -> Iterator[str]:
    """Whether a busy machine kept a program waiting, in the session's own time."""
    done = of.first("done")
    until = float("inf") if done is None else float(done["at"])
    told = [float(each["by_s"]) for each in _server(of, "late") if float(each["at"]) <= until]
    own = [float(each["late_most_s"]) for each in of.named("watchdog")]
    for who, late_s in (("server", max(told, default=0.0)), ("assistant", max(own, default=0.0))):
        if late_s > MACHINE_S:
            yield f"the machine was too busy: the {who} ran {late_s:.2f} s late (at most {MACHINE_S:g})"


def _late_in_lapses(of: Reading) -> Iterator[str]:
    """Whether it did so where session time was hurried, which multiplies what a busy machine adds."""
    for lapsed in of.named("lapsed"):
        factor = float(lapsed["factor"])
        for what, key, most_s in (
            ("half of its wake-ups were", "late_p50_s", LAPSED_MEDIAN_S),
            ("a wake-up was", "late_most_s", LAPSED_MOST_S),
        ):
            late_s = float(lapsed[key])
            if late_s * factor > most_s:
                at_most = f"at most {most_s / factor * 1000:.0f}"
                yield f"the machine was too busy for a lapse: {what} {late_s * 1000:.1f} ms late ({at_most})"


def _obeyed_late(of: Reading) -> Iterator[str]:
    """Whether a busy machine kept waiting what a mark asks for: times from the mark would tell of the machine.

    In wall seconds, a lapse or not: what acts on the path has no clock of the session's.
    """
    for mark in of.named("mark"):
        late_s = float(mark.get("done_at", mark["at"])) - float(mark["at"])
        if late_s > MACHINE_S:
            came = f"the {mark['name']} came {late_s:.2f} s after its mark"
            yield f"the machine was too busy: {came} (at most {MACHINE_S:g})"


def _server(of: Reading, name: str) -> list[Said]:
    return [each for each in of.seen.server if each["event"] == name]


def _detached(of: Reading, *, before: float) -> list[Said]:
    """Ends of connections that carried a session before an instant; a refused attempt's is none."""
    carried = {each.get("connection") for each in _server(of, "attach") if float(each["at"]) < before}
    return [each for each in _server(of, "detach") if each.get("connection") in carried]
