"""What stands above the tables of ``lab live lifecycle``: what each asks, and what its columns are."""

from lab.cli.grid import MARK
from lab.host.machine.variant import RELEASED
from lab.host.tables.rows import Question
from lab.host.tables.stage import REQUEST_S
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.study.lifecycle.leaks import LAPSE, WITHIN_S
from lab.study.lifecycle.ways import PATHS

TAKES = "about half a minute"
"""The whole command, nearly all of it waiting; said in its help and in docs/lifecycle.md."""

Words = tuple[str, str]
"""A title, and what stands below it."""


def _flat(text: str) -> str:
    return " ".join(text.split())


HEAD = _flat(f"""
    Sessions in three variants: as published (firebase-ios-sdk pull request 17045, with its defects), with the repair
    (published there: of the release alone), the lab's. Hosts further down. Each row was predicted, the defects too:
    {MARK} stands before a row that shows one, and the last line says whether all is as predicted.
""")

(_SILENCE_S,) = {endpoint.server.silence_close_s for endpoint in ENDPOINTS.values()}
"""The limit of all servers, after which one ends what leaked."""

LEAKS: Words = (
    "Sessions that are left: who sees the end, and when",
    _flat(f"""
        Connected and left, by {len(PATHS)} paths at {len(ENDPOINTS)} servers; released: the last reference goes,
        without close. Each time is the slowest of all servers. The bar is the connection as its server sees it, from
        being left to its end (x), on a logarithmic axis; > is open when the watch of {WITHIN_S:g} s is over. server,
        socket, reader: until the server saw the end, until the client's kernel was done with the socket, until whoever
        reads the responses came to a normal end. open: not within the watch (after close the responses stay open, for a
        resume); error: told one in place of it; -: gone with its process. "{_SILENCE_S + 4:g} s, its limit": nobody
        closed, and the server did at its limit of silence, {_SILENCE_S:g} s. Those are seconds of its own time: after
        the watch it runs {LAPSE:g} times faster, as a time lapse. Where the event loop stands still nobody answers that
        close, and it is not awaited.
    """),
)

SAID: Words = (
    "What those sessions say of themselves",
    _flat("""
        is_closed, asked when connected and after each close and resume that the path has; during connect it is yes,
        since nothing stands yet.
    """),
)

REPEATED: Words = (
    "Many sessions, released at about the same time",
    _flat(f"""
        ended: those whose end server, socket and reader saw within {WITHIN_S:g} s; slowest: until the server saw the
        last one.
    """),
)

LIMIT: Words = (
    "Sessions opened one after the other, none closed",
    _flat("""
        limit: sessions that the server allows at once; refused: the first that it refused, of those that were tried;
        counted: those that it holds at the end. What leaks is refused where the limit is within reach.
    """),
)

RULES: Words = (
    "What the servers do differently, as a session sees it",
    _flat("""
        version: of the API; handles: names to resume by that came before the close; none now: how often it said that
        there is none at the moment; late result: what became of a tool's result for a call of the former connection.
    """),
)

RACE: Words = (
    "The close race: our close, and the pending receive that fails at it",
    _flat("""
        Runs that were right, of all. reader: came to the first end, a normal one where that was our close; recorded:
        the end that is kept is the first; later sends: raise the first end. every order: all that the steps can have;
        where the failing receive ends the session once more that is a step more, and so more orders. The published
        repair does not claim to mend this race, and comes out as published.
    """),
)

SETUP: Words = (
    "Ended during the setup: what the application is told",
    _flat("""
        who: who ended it: the server, nobody (network) or us; connect: what it raised; reader, sends: what these were
        told later, - where no session stands. nothing: waits on; CODE: the close code, where it is told; 1006 stands
        for no close frame. "TCP kept": a close frame, and no FIN behind it.
    """),
)

LATER: Words = (
    "Ended after the setup: what the application is told",
    _flat("""
        As above. "crosses the server's": our close frame and the server's are under way at once; the codes are the
        server's.
    """),
)

HOSTS = _flat(f"""
    Session hosts: repaired, with one defect each, and {RELEASED.label}: the lab's host with every defect that this
    release shows, or that the published description has of it. over: both stands for tcp and ws (WebSocket); seen: what
    the other side was told, or what was done; after: from the cause to that, the slowest. A request waits
    {REQUEST_S:g} s here for its answer.
""")

HOST = {
    Question.CLOSING: "Whether the remote is told that a session has ended (the event session_closed), and why.",
    Question.WITHOUT_SESSION: "What a request is answered while no session is there to answer it.",
    Question.FINALIZING: "Whether the simulator gets its verdict, and the room goes once, after it.",
}
