"""From what the programs of a session said, and what the wire showed, to the study's quantities.

Nothing here knows what is expected. Instants are the programs' CLOCK_MONOTONIC; durations are session seconds, which
run faster than the wall during a lapse. A lapsed kernel is faster on its own account: its back-off, from the first lost
segment to the last copy, is multiplied by the kernel's factor.
"""

from collections.abc import Callable, Iterator, Mapping

from lab.live.client.judging import Saying, what_it_says
from lab.study.reading import HEALS, Observed, Reading, Said, reading_of
from lab.study.scenario import Loss, Quantity

ABNORMAL = 1006
"""How RFC 6455 section 7.4.1 calls an end without a close frame."""

LOCKED = 1011
"""How the study's server refuses a resume; another code would be another refusal."""

EXHAUSTED = "RESOURCE_EXHAUSTED"
"""How the reason of a refusal by the limit begins."""

Values = Mapping[Quantity, tuple[float, ...]]
"""What each quantity came to: a count is one number, times are one for each time that it happened."""


def read(seen: Observed) -> Values:
    """Every quantity that the session has; counts always, times where they happened."""
    reading = reading_of(seen)
    return {quantity: tuple(how(reading)) for quantity, how in _HOW.items()}


def _refused(of: Reading) -> Iterator[float]:
    yield sum(each.get("code") == LOCKED for each in of.answers_to_attempts("refused", resume=True))


def _accepted(of: Reading) -> Iterator[float]:
    yield len(of.answers_to_attempts("setup_complete", resume=True))


def _refusal(of: Reading) -> Iterator[float]:
    yield from (float(each["took_s"]) for each in of.answers_to_attempts("refused", resume=True))


def _acceptance(of: Reading) -> Iterator[float]:
    yield from (float(each["took_s"]) for each in of.answers_to_attempts("setup_complete", resume=True))


def _resumed(of: Reading) -> Iterator[float]:
    accepted = of.answers_to_attempts("setup_complete", resume=True)
    for loss, following in of.episodes():
        later = [each for each in accepted if each in of.named("setup_complete", after=loss, before=following)]
        yield from of.between(loss, later[0] if later else None)


def _detected(of: Reading) -> Iterator[float]:
    for loss, following in of.episodes() if of.seen.loss.silent else ():
        yield from of.between(loss, of.first("lost", after=loss, before=following))


def _consistent(of: Reading) -> Iterator[float]:
    yield sum(1 for each in of.named("answer") if each["consistent"] is True)


def _answered(of: Reading) -> Iterator[float]:
    yield len(of.named("answer"))


def _bookings(of: Reading) -> Iterator[float]:
    yield from (float(each["count"]) for each in of.named("bookings")[-1:])


def _calls(of: Reading) -> list[Said]:
    """The first event of each call id."""
    first: dict[object, Said] = {}
    for each in of.named("tool_call"):
        first.setdefault(each["id"], each)
    return list(first.values())


def _reissued(of: Reading) -> Iterator[float]:
    yield len(_calls(of)[1:])


def _reissued_after(of: Reading) -> Iterator[float]:
    for call in _calls(of)[1:]:
        yield from of.between(next(reversed(of.named("restored", before=call)), None), call)


def _window(of: Reading) -> Iterator[float]:
    for loss, following in of.episodes():
        lost = of.first("lost", after=loss, before=following)
        fresh = [each for each in of.named("connecting", after=loss, before=following) if each.get("handle") is None]
        yield from of.between(lost, fresh[0] if fresh else None)


def _new_sessions(of: Reading) -> Iterator[tuple[Said, Said, Said | None]]:
    """Each loss that a new session followed, that session's setup, and the next loss."""
    fresh = of.answers_to_attempts("setup_complete", resume=False)
    for loss, following in of.episodes():
        later = [each for each in of.named("setup_complete", after=loss, before=following) if each in fresh]
        if later:
            yield loss, later[0], following


def _fallback(of: Reading) -> Iterator[float]:
    for loss, setup, _ in _new_sessions(of):
        yield from of.between(loss, setup)


def _new_setup(of: Reading) -> Iterator[float]:
    yield from (float(setup["took_s"]) for _, setup, _ in _new_sessions(of))


def _speaks_after(of: Reading) -> Iterator[float]:
    for _, setup, following in _new_sessions(of):
        restored = of.first("restored", after=setup, before=following)
        audio = None if restored is None else of.first("audio_first", after=restored, before=following)
        yield from of.between(restored, audio)


def _first_audio(of: Reading) -> Iterator[float]:
    for loss, setup, following in _new_sessions(of):
        yield from of.between(loss, of.first("audio_first", after=setup, before=following))


def _close_echo(of: Reading) -> Iterator[float]:
    for closing in of.named("close_old"):
        ends = [each for each in of.named("closed", after=closing) if each.get("attempt") == closing.get("attempt")]
        yield from of.between(closing, ends[0] if ends else None)


def _result_age(of: Reading) -> Iterator[float]:
    for call in _calls(of):
        sent = [each for each in of.named("result_sent", after=call) if each["id"] == call["id"]]
        yield from of.between(call, sent[-1] if sent else None)


def _announced(of: Reading) -> Iterator[float]:
    for sent in of.named("result_sent"):
        ends = of.first("turn_complete", after=sent)
        yield from of.between(sent, of.first("audio_first", after=sent, before=ends))


def _behind(of: Reading) -> Iterator[float]:
    for answer in of.named("answer"):
        if answer["consistent"] is not True and answer.get("commit_age_s") is not None:
            yield float(answer["commit_age_s"])


def _still_booking(of: Reading) -> Iterator[float]:
    """To the first sound of the first turn after a restore that says so, where the commit was made by then."""
    if (restored := of.first("restored")) is None:
        return
    for said in of.named("model_said", after=restored):
        if what_it_says(str(said["text"])) is Saying.IN_PROGRESS:
            sound = next(reversed(of.named("audio_first", after=restored, before=said)), None)
            yield from of.between(of.first("committed", before=sound), sound)
            return


def _silent_until(of: Reading) -> Iterator[float]:
    wire = of.seen.wire
    if wire is not None and wire.first_lost_s is not None:
        yield of.time.session(wire.cut_at + wire.first_lost_s) - of.time.session(wire.cut_at)
    elif of.seen.loss is Loss.FREEZE:
        closes = [each for each in of.seen.server if each["event"] == "closed" and each.get("because") == "silence"]
        for loss, _ in of.episodes()[:1]:
            yield from of.between(loss, closes[0] if closes else None)


def _copies(of: Reading) -> Iterator[float]:
    if of.seen.wire is not None:
        yield of.seen.wire.copies


def _last_copy(of: Reading) -> Iterator[float]:
    wire = of.seen.wire
    if wire is None or wire.first_lost_s is None or wire.last_copy_s is None:
        return
    for silent_s in _silent_until(of):
        yield silent_s + (wire.last_copy_s - wire.first_lost_s) * of.seen.kernel_factor


def _setup_closed(of: Reading) -> Iterator[float]:
    yield from (float(each["code"]) for each in of.answers_to_attempts("refused", resume=False))


def _updated(of: Reading) -> Iterator[float]:
    yield len(of.named("update_note"))


def _heard_again(of: Reading) -> Iterator[float]:
    replayed = of.first("replayed")
    yield 0 if replayed is None else len({each["text"] for each in of.named("heard", after=replayed)})


def _gave_up(of: Reading) -> Iterator[float]:
    yield len(of.named("given_up"))


def _gave_up_at_limit(of: Reading) -> Iterator[float]:
    ends = ((each, of.named("refused", before=each)[-1:]) for each in of.named("given_up"))
    yield sum(str(last[0].get("reason")).startswith(EXHAUSTED) for _, last in ends if last)


def _dead_code(of: Reading) -> Iterator[float]:
    heal = next((each for each in of.named("mark") if each.get("name") in HEALS), None)
    if heal is None:
        return
    used = {each.get("attempt") for each in of.named("setup_complete", before=heal)}
    for closed in [each for each in of.named("closed", after=heal) if each.get("attempt") in used][:1]:
        yield ABNORMAL if closed.get("code") is None else float(closed["code"])


def _begun(of: Reading, outcome: str) -> Iterator[float]:
    """When attempts to resume with this outcome began, from the loss before them."""
    ended = {each.get("attempt") for each in of.answers_to_attempts(outcome, resume=True)}
    for loss, following in of.episodes():
        for begun in of.named("connecting", after=loss, before=following):
            if begun.get("attempt") in ended:
                yield from of.between(loss, begun)


_HOW: Mapping[Quantity, Callable[[Reading], Iterator[float]]] = {
    Quantity.REFUSED: _refused,
    Quantity.ACCEPTED: _accepted,
    Quantity.REFUSAL_S: _refusal,
    Quantity.ACCEPTANCE_S: _acceptance,
    Quantity.RESUMED_S: _resumed,
    Quantity.DETECTED_S: _detected,
    Quantity.CONSISTENT: _consistent,
    Quantity.BOOKINGS: _bookings,
    Quantity.REISSUED: _reissued,
    Quantity.REISSUED_AFTER_S: _reissued_after,
    Quantity.WINDOW_S: _window,
    Quantity.FALLBACK_S: _fallback,
    Quantity.NEW_SETUP_S: _new_setup,
    Quantity.SPEAKS_AFTER_S: _speaks_after,
    Quantity.FIRST_AUDIO_S: _first_audio,
    Quantity.CLOSE_ECHO_S: _close_echo,
    Quantity.RESULT_AGE_S: _result_age,
    Quantity.ANNOUNCED_S: _announced,
    Quantity.BEHIND_S: _behind,
    Quantity.STILL_BOOKING_S: _still_booking,
    Quantity.SILENT_UNTIL_S: _silent_until,
    Quantity.COPIES: _copies,
    Quantity.LAST_COPY_S: _last_copy,
    Quantity.SETUP_CLOSED: _setup_closed,
    Quantity.ANSWERED: _answered,
    Quantity.UPDATED: _updated,
    Quantity.HEARD_AGAIN: _heard_again,
    Quantity.GAVE_UP: _gave_up,
    Quantity.GAVE_UP_AT_LIMIT: _gave_up_at_limit,
    Quantity.DEAD_CODE: _dead_code,
    Quantity.REFUSED_AT_S: lambda of: _begun(of, "refused"),
    Quantity.ACCEPTED_AT_S: lambda of: _begun(of, "setup_complete"),
}
