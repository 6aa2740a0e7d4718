"""A question, its answer, and whether that is the truth."""

from collections.abc import Callable

from lab.live.client.backend import Backend
from lab.live.client.conversation import Answer, Conversation
from lab.live.client.events import Events
from lab.live.client.judging import is_consistent, what_it_says
from lab.live.clock import Clock


async def ask(
    question: str,
    put: Callable[[str], None],
    conversation: Conversation,
    backend: Backend,
    clock: Clock,
    events: Events,
) -> None:
    """Ask, wait for the whole answer, and tell it beside the truth at the time at which it began.

    A turn that is under way at the question is no answer to it, whether it is finished or interrupted.

    Args:
        question: Its text.
        put: Puts it.
        conversation: Where the answer will stand.
        backend: Knows the truth.
        clock: Session time.
        events: Where it is told.
    """
    after, asked_t = len(events.log), clock.now()
    to_pass = conversation.model_speaks
    put(question)
    while True:
        place, event = await events.wait_for("model_said", "interrupted", after=after)
        after = place + 1
        if event.name == "model_said" and not to_pass:
            break
        to_pass = False
    if conversation.latest is not None:
        _judge(question, conversation.latest, asked_t, backend, events)


def _judge(question: str, answer: Answer, asked_t: float, backend: Backend, events: Events) -> None:
    says, truth, committed_t = what_it_says(answer.text), backend.truth(answer.began_t), backend.committed_t()
    events.tell(
        "answer",
        asked=question,
        text=answer.text,
        says=says.value,
        truth=truth.value,
        consistent=is_consistent(says, truth),
        commit_age_s=None if committed_t is None else round(answer.began_t - committed_t, 6),
        began_s=round(answer.began_t - asked_t, 6),
    )
