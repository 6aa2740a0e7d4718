"""Commands that run a module of the lab in a Python of its own, with the same modules as this one."""

import sys
from collections.abc import Sequence
from pathlib import Path

_BOOT = "import sys, runpy; sys.path[:] = {path!r}; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"


def python(module: str, argv: Sequence[str] = ()) -> list[str]:
    """The command line; whoever runs it need not be in this process's folder."""
    path = [str(Path(entry).resolve()) for entry in sys.path]
    return [sys.executable, "-c", _BOOT.format(path=path, module=module), *argv]
