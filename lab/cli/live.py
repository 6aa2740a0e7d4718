"""``lab live``: live sessions under packet loss, a verb with verbs of its own.

Each is a function of its name in ``lab.cli.live_NAME``, imported when it is called.
"""

from collections.abc import Mapping
from typing import ClassVar

import typer

from lab.cli.app import Verbs

VERBS = {
    "serve": "A local session server that real clients can be pointed at.",
    "assistant": "The reference client: it books a slot, and survives losses.",
    "run": "One scenario of the study, or a new one, with its verdict.",
    "study": "All sessions of the study in parallel, and what they show.",
    "lifecycle": "How sessions end: released, closed, told and finalized.",
}
"""Every verb and its line in ``lab live --help``."""


class _LiveVerbs(Verbs):
    verbs: ClassVar[Mapping[str, str]] = VERBS
    modules: ClassVar[str] = "lab.cli.live_"


live = typer.Typer(
    cls=_LiveVerbs,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@live.callback()
def _live() -> None:
    """Live voice sessions whose connection goes silently dark: a server, a client that recovers, and the study."""
