"""What a client does about losing a live session, as pure machines; on any client that speaks the protocol.

::

    liveness      when a connection is lost: pings of one's own, patience with slow servers
    policy        what is done then: resume, fall back, give up; events in, commands out
    states        its transition table
    options       its numbers, as data
    attempts      one kind of attempt and its pace
    old           connections that were adopted once, to be closed
    commands      what it tells the shell to do
    ledger        calls and results across connections; one job for one meaning
    businesskey   when two calls mean the same
    transcript    what was said
    restore       what a new session is told
    playback      what the user hears meanwhile

Nothing here waits, sends or looks at a clock. A shell owns the connections and passes on what happens to them, with the
time; it carries out what comes back, in that order, and wakes the policy when it asks for it. With ``dial(attempt,
handle)`` and so on being the shell's own, for example tasks around ``google.genai``'s ``aio.live.connect``::

    recovery, ledger, transcript = Recovery(Policy(parallel=True)), Ledger(), Transcript()

    def obey(commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Dial(attempt, handle):
                    dial(attempt, handle)                        # in the background; then recovery.ready/refused/failed
                case Abandon(attempt, code) | CloseOld(attempt, code):
                    close(attempt, code)                         # in the background too: a dead path answers nothing
                case Adopt(attempt, resumed):
                    ledger.adopted(resumed=resumed)              # from now on speak, listen and watch here
                    if resumed:
                        send(attempt, ToolResponse(ledger.take(now=clock())))
                case Restore(attempt, note):
                    jobs = ledger.effects(now=clock())
                    send(attempt, history(transcript.turns, jobs, note=note))
                    ledger.noted(jobs)
                case Report(event, fields):
                    log(event, fields)
                case GiveUp(reason):
                    tell_the_user(reason)

    obey(recovery.lost(now=clock(), by=loss.by))                 # after ledger.lost() and transcript.lost()
    obey(recovery.wake(now=clock()))                             # at recovery.next_at(), if that is not None

One ``Watchdog`` per connection says when it is lost. Its ``frame`` and ``pong`` are called by whoever reads the socket,
at once: a reader that waits for the sound to be played makes a healthy connection look dead.
"""

from lab.live.recovery.businesskey import normalise
from lab.live.recovery.commands import (
    Abandon,
    Adopt,
    CloseOld,
    Command,
    Dial,
    GiveUp,
    Happening,
    Report,
    Restore,
)
from lab.live.recovery.ledger import Job, Ledger, Progress
from lab.live.recovery.liveness import By, Loss, Patience, Watchdog
from lab.live.recovery.playback import Gap, Playback
from lab.live.recovery.policy import Policy, Recovery
from lab.live.recovery.restore import history, update_note
from lab.live.recovery.states import State
from lab.live.recovery.transcript import Transcript, Turn

__all__ = [
    "Abandon",
    "Adopt",
    "By",
    "CloseOld",
    "Command",
    "Dial",
    "Gap",
    "GiveUp",
    "Happening",
    "Job",
    "Ledger",
    "Loss",
    "Patience",
    "Playback",
    "Policy",
    "Progress",
    "Recovery",
    "Report",
    "Restore",
    "State",
    "Transcript",
    "Turn",
    "Watchdog",
    "history",
    "normalise",
    "update_note",
]
