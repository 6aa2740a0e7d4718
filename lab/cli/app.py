"""The console script ``lab``: its verbs, and how errors become exit codes.

Each verb is a function of that name in the module of that name beside this one, imported when it is called: ``lab
--help`` costs typer alone. A verb with verbs of its own is a ``typer.Typer`` of that name. Help is plain text on
purpose: rich help takes twice the time to appear.
"""

import atexit
import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Annotated, Any, ClassVar

import typer
import typer.core
import typer.main

import lab
from lab.core.errors import EnvironmentNotReady, LabError

VERBS = {
    "demo": "Cut one flow, narrated, and watch both kernels give up (20 s).",
    "run": "Cut a flow of your own programs, and judge what follows.",
    "serve": "Serve the control API over a testbed to play with, until Ctrl-C.",
    "live": "Live sessions: serve, assistant, run, study, lifecycle.",
    "attach": "Cut one flow of a running container, watch, heal, restore.",
    "predict": "Say when a kernel would give up, without running anything.",
    "explain": "Read a capture: what was lost, since when, how often resent.",
    "report": "Rebuild the report and the figure of a run folder.",
    "doctor": "Find all that is missing on this machine, each with its fix.",
    "image": "Build the images of the container backend: lab image build.",
    "clean": "Remove what a crashed run left behind; only the lab's own.",
}
"""Every verb and its line in ``lab --help``."""

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT."""

BUG = 70
"""Exit code of an error that nobody foresaw: EX_SOFTWARE of sysexits.h. Python's own 1 would read as "refuted"."""


class Verbs(typer.core.TyperGroup):
    """The verbs by name; a module is imported when its verb is called."""

    verbs: ClassVar[Mapping[str, str]] = VERBS
    modules: ClassVar[str] = "lab.cli."
    """How the names of their modules begin."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Their names."""
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the signature is click's
        """One of them."""
        if cmd_name not in self.verbs:
            return None
        verb = getattr(importlib.import_module(f"{self.modules}{cmd_name}"), cmd_name)
        if isinstance(verb, typer.Typer):
            return typer.main.get_group(verb)
        single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        single.command(cmd_name)(_guarded(verb))
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the signature is click's
        """Write their lines."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.verbs.items()))


app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"blackhole-lab {lab.__version__}")
        raise typer.Exit


@app.callback()
def _lab(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Cut one established TCP flow silently, and measure who notices, when.

    Exit codes: 0 confirmed or done, 1 refuted, 2 usage, 3 invalid, 4 unsupported here, 5 environment not ready,
    130 interrupted. Results go to standard output, everything else to standard error.
    """


def main() -> None:
    """Run the command line; does not return."""
    _reopen()
    for stream in (sys.stdout, sys.stderr):
        # Output of foreign programs is quoted as it came; a narrow locale must not turn that into an error.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are TextIOWrappers here
    try:
        with _exit_codes():
            app(prog_name="lab")
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        # CPython remembers a Ctrl-C that struck inside exec(), as a module is imported, and ends itself by SIGINT at
        # exit although it was handled. All that has to be written is on the disk by now.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # What has to be ended with the process still is: fork servers, the reaper of containers and its folder.
        atexit._run_exitfuncs()  # noqa: SLF001 - nothing else runs them before os._exit
        os._exit(INTERRUPTED)


def _reopen() -> None:
    """Open what the caller has closed (``>&-``), on nothing: else the next file opened would get what is printed.

    A result that nobody can read changes no exit code, which says it too; but it is said.
    """
    closed = []
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # The lowest number that is free, which is this one.
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
            closed.append(name)
    if "stdout" in closed:
        with contextlib.suppress(OSError):
            sys.stderr.write("Standard output is closed: results are printed nowhere.\n")


def _guarded(verb: Callable[..., None]) -> Callable[..., None]:
    @wraps(verb)
    def call(*args: Any, **kwargs: Any) -> None:
        with _exit_codes():
            verb(*args, **kwargs)

    return call


@contextlib.contextmanager
def _exit_codes() -> Iterator[None]:
    """Turn what goes wrong inside into a message on standard error and the exit code that scripts rely on."""
    try:
        yield
    except LabError as error:
        _tell(error.message, error.fix)
        raise SystemExit(error.exit_code) from error
    except KeyboardInterrupt as error:
        _tell("Interrupted.")
        raise SystemExit(INTERRUPTED) from error
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            _tell(f"Something could not be written: {error}.", "free some space")
            raise SystemExit(EnvironmentNotReady.exit_code) from error
        _tell(
            f"The lab failed in a way nobody foresaw: {type(error).__name__}: {error}",
            "set LAB_DEBUG=1 to see the traceback, and report it as an issue of blackhole-lab.",
        )
        raise SystemExit(BUG) from error


def _tell(message: str, fix: str | None = None) -> None:
    """Say it, where that can be said: the exit code has to come through whatever becomes of the words."""
    with contextlib.suppress(OSError):
        _say(message, fix)


def _say(message: str, fix: str | None) -> None:
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    if os.environ.get("LAB_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    from lab.cli.output import console

    console.print(message, style="bold red")
    if fix is not None:
        console.print(f"Fix: {fix}")
