"""What can go wrong, split by whose fault it is.

::

    LabError                    exit code (70: none of those below; never 1, which is "refuted")
     +- UsageError                  2      the author's mistake, found before anything started
     +- InvalidRun                  3      the run could not prove itself
     +- Unsupported                 4      this kernel or backend cannot do it, with the reason
     +- EnvironmentNotReady         5      something is missing here, with the one-line fix
"""


class LabError(Exception):
    """Base of every error that the lab raises on purpose.

    Args:
        message: What was expected and what was seen, one or two sentences.
        fix: The one line that mends it, where there is one.
    """

    exit_code = 70
    """EX_SOFTWARE of sysexits.h: 1 would read as "refuted"."""

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message, fix)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return self.message if self.fix is None else f"{self.message} Fix: {self.fix}"

    def __reduce__(self) -> tuple[object, ...]:
        # Agents hand errors to the calling process by pickle, which would lose the keyword argument.
        return _rebuild, (type(self), self.message, self.fix)


class UsageError(LabError):
    """The author's mistake: a wrong option, a command that does not exist, an ambiguous flow."""

    exit_code = 2


class InvalidRun(LabError):
    """The run could not prove itself; its result is neither a pass nor a failure."""

    exit_code = 3


class Unsupported(LabError):
    """This kernel or backend lacks what the run needs."""

    exit_code = 4


class EnvironmentNotReady(LabError):
    """A requirement is missing on this machine."""

    exit_code = 5


def _rebuild(kind: type[LabError], message: str, fix: str | None) -> LabError:
    return kind(message, fix=fix)
