"""A server whose model asks for two slots where one was wanted."""

import sys
from collections.abc import Sequence
from typing import Any

from lab.live.model.scripted import ScriptedModel
from lab.live.server import program

call = ScriptedModel._call


def call_twice(self: ScriptedModel, request: Any, at: float) -> None:
    from dataclasses import replace

    call(self, replace(request, slot="tomorrow 4pm"), at)
    call(self, request, at)


def main(argv: Sequence[str] | None = None) -> int:
    ScriptedModel._call = call_twice  # type: ignore[method-assign]
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
