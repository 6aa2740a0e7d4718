"""Which programs a session is made of: the command lines of its server, its proxy and its assistant."""

import json
from dataclasses import dataclass
from pathlib import Path

from lab.run.spec import Program
from lab.study.scenario import Loss, Scenario, Variant

PORT = 8765
"""Of the session server, and of the proxy in front of it: an assistant sees the same port either way."""

STATUS_PORT = 8766
"""Of the server's status page, which the assistant tells of lapses; another flow, which nothing cuts."""

BOOKINGS = "bookings.sqlite"
FRAMES = "frames.jsonl"


@dataclass(frozen=True, slots=True)
class Modules:
    """Which modules are run; tests have their own."""

    server: str = "lab.live.server"
    client: str = "lab.live.client"
    proxy: str = "lab.programs.freeze"
    preload: tuple[str, ...] = (
        "lab.live.client.program",
        "lab.live.client.wire_link",
        "lab.live.model.scripted",
        "lab.live.server.parts",
        "lab.live.server.program",
        "lab.live.voice.rehearsed",
        "sqlite3",
        "websockets.asyncio.client",
        "websockets.asyncio.server",
    )
    """What they import, a third of a second of processor time for each session that does so itself."""


@dataclass(frozen=True, slots=True)
class Casting:
    """One session's programs.

    What they leave in the folder, they can leave there only where they see the caller's files, as in namespaces.
    """

    scenario: Scenario
    number: int
    """From 0; seeds what the server draws."""

    variant: Variant
    modules: Modules = Modules()
    folder: Path | None = None
    """Where programs may write; None where they do not see the caller's files."""

    text: bool = False
    """The assistant types instead of speaking."""

    frames: bool = False
    """The server writes down every frame."""

    @property
    def frozen(self) -> bool:
        """Whether a proxy stands in the router."""
        return self.scenario.loss is Loss.FREEZE

    def server(self) -> Program:
        """The session server, in the server node."""
        plan = self.scenario.server
        argv = ["--port", str(PORT), "--status-port", str(STATUS_PORT), "--profile", plan.profile]
        argv += ["--seed", str(self.number)]
        for name, value in plan.settings.items():
            argv += ["--set", f"{name}={value}"]
        if self.frames and self.folder is not None:
            argv += ["--log", str(self.folder / FRAMES)]
        return Program(tuple(argv), self.modules.server)

    def proxy(self) -> Program:
        """The proxy, in the router."""
        return Program((str(PORT), "server", str(PORT)), self.modules.proxy)

    def client(self) -> Program:
        """The assistant, in the client node."""
        backend = self.scenario.backend
        host = "router" if self.frozen else "server"
        argv = ["--url", f"ws://{host}:{PORT}", "--status", f"http://server:{STATUS_PORT}"]
        argv += ["--script", json.dumps([dict(step) for step in self.variant.steps])]
        argv += ["--commit-after", f"{backend.commit_after_s:g}"]
        if self.scenario.policy:
            argv += ["--policy", json.dumps(dict(self.scenario.policy))]
        if self.folder is not None:
            argv += ["--bookings", str(self.folder / BOOKINGS)]
        argv += ["--unique"] * backend.unique + ["--replay"] * self.scenario.replay_speech + ["--text"] * self.text
        return Program(tuple(argv), self.modules.client)
