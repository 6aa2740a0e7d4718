"""Steps of the assistant's script, as JSON, and the passages that many scenarios share."""

from collections.abc import Sequence

from lab.study.scenario import Mark, Step

CALL_TO_LOSS_S = 1.0
"""R1's point: this long after the call, the model idle."""


def say(clip: str) -> Step:
    """Speak a clip in real time."""
    return {"do": "say", "clip": clip}


def wait(event: str, plus: float = 0.0, timeout: float = 30.0) -> Step:
    """Wait until so long after an event of the assistant's own, session seconds.

    What came since the last step that did something counts; so a mark's own event does right after it.
    """
    return {"do": "await", "event": event, "plus": plus, "timeout": timeout}


def mark(what: Mark) -> Step:
    """Ask for something that only the network can do."""
    return {"do": "mark", "name": what.value}


def drop(how: str) -> Step:
    """The client's own doing: abort or close."""
    return {"do": "drop", "how": how}


def resume(*at: float) -> Step:
    """Attempts that start so long after the step, until one is accepted."""
    return {"do": "resume", "at": list(at)}


def resume_every(every_s: float, attempts: int) -> Step:
    """Attempts at a steady pace, until one is accepted; the first at once."""
    return resume(*(every_s * k for k in range(attempts)))


def watch(for_s: float) -> Step:
    """Do nothing but listen."""
    return {"do": "watch", "for": for_s}


def ask(text: str = "Did you book it?") -> Step:
    """Ask by text and wait for the whole answer."""
    return {"do": "ask", "text": text}


def lapse(factor: float) -> Step:
    """Let session time run by this factor; 1 ends it."""
    return {"do": "lapse", "factor": factor}


SEND_RESULT: Step = {"do": "send-result"}
HOLD_RESULT: Step = {"do": "hold-result"}
CLOSE_OLD: Step = {"do": "close-old"}
REUSE_OLD: Step = {"do": "reuse-old"}
RECOVER: Step = {"do": "recover"}
END: Step = {"do": "end"}


RECOVERED = (wait("lost"), RECOVER)
"""Notice the loss, and act on it by the policy."""

TOLD = wait("turn_complete")
"""Hear the model out: what it says of its own accord after a restore."""


def lapsed(factor: float, *steps: Step) -> tuple[Step, ...]:
    """Steps during which session time runs by a factor; as they are where it is 1."""
    return steps if factor == 1 else (lapse(factor), *steps, lapse(1))


def booking(plus: float = CALL_TO_LOSS_S, *, hold: bool = True) -> tuple[Step, ...]:
    """Ask for the slot, and wait until so long after the model's call.

    Args:
        plus: Session seconds.
        hold: The result waits for the script; else it is sent as soon as the backend has committed.
    """
    return (*((HOLD_RESULT,) if hold else ()), say("book"), wait("tool_call", plus))


def speaking(plus: float, *, hold: bool = True) -> tuple[Step, ...]:
    """The same, then a follow-up question, until so long after the first audio of the model's answer (R4)."""
    return (*booking(0.5, hold=hold), say("follow-up"), wait("audio_first", plus))


def report() -> tuple[Step, ...]:
    """Send the result, hear its announcement, and ask."""
    return (SEND_RESULT, wait("result_sent"), wait("turn_complete"), ask(), END)


def backing_off(gaps_s: Sequence[float], refusal_s: float) -> tuple[float, ...]:
    """Starts of attempts each of which waits so long after the refusal before it."""
    starts = [0.0]
    for gap_s in gaps_s:
        starts.append(starts[-1] + refusal_s + gap_s)
    return tuple(round(start, 3) for start in starts)
