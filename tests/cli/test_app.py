"""The command line's shell: verbs, exit codes, and how soon help appears."""

import importlib
import inspect
import subprocess
import sys
import types
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner, Result

from lab.cli.app import BUG, INTERRUPTED, VERBS, app
from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError

Runs = Callable[[Callable[[], None]], Result]


@pytest.fixture
def run_verb(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Runs a function as if it were a verb of the lab."""

    def run(body: Callable[[], None]) -> Result:
        def probe() -> None:
            """A verb of the tests."""
            body()

        module = types.ModuleType("lab.cli.probe")
        module.probe = probe  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "lab.cli.probe", module)
        monkeypatch.setitem(VERBS, "probe", "A verb of the tests.")
        return CliRunner().invoke(app, ["probe"])

    return run


def lab(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lab", *argv], capture_output=True, text=True, timeout=30, check=False)


def nothing_there() -> None:
    [][0]


GROUPS = {"live"}
"""Verbs with verbs of their own, each with its own tests."""


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - GROUPS))
def test_every_verb_is_a_function_of_its_name_in_the_module_of_its_name(verb: str) -> None:
    function = getattr(importlib.import_module(f"lab.cli.{verb}"), verb)

    assert inspect.isfunction(function)
    assert inspect.getdoc(function)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_fits_eighty_columns(verb: str) -> None:
    shown = lab(verb, "--help")

    assert shown.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_help_names_every_verb_and_fits_eighty_columns() -> None:
    shown = lab("--help")

    assert shown.returncode == 0
    assert shown.stderr == ""
    for verb, summary in VERBS.items():
        assert f"  {verb}" in shown.stdout
        assert summary in shown.stdout, "a summary must not wrap"
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_help_imports_nothing_that_is_slow() -> None:
    heavy = {"rich", "scapy", "pyroute2", "iptc", "matplotlib", "numpy", "pydantic", "pytest", "docker"}
    program = (
        "import sys\n"
        "from lab.cli.app import main\n"
        "sys.argv = ['lab', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)

    assert "lab.cli.app" in ran.stderr.split()
    assert not heavy & set(ran.stderr.split())


def test_version_is_printed_without_a_verb() -> None:
    shown = lab("--version")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("blackhole-lab 0.")


@pytest.mark.parametrize("argv", [["nosuchverb"], ["--nosuchoption"], ["doctor", "--nosuchoption"]])
def test_a_usage_error_exits_with_2_and_says_nothing_on_standard_output(argv: list[str]) -> None:
    shown = lab(*argv)

    assert (shown.returncode, shown.stdout) == (2, "")
    assert "Error: No such" in shown.stderr


def test_a_verb_that_returns_is_done(run_verb: Runs) -> None:
    assert run_verb(lambda: None).exit_code == 0


@pytest.mark.parametrize(
    ("kind", "code"), [(LabError, 70), (UsageError, 2), (InvalidRun, 3), (Unsupported, 4), (EnvironmentNotReady, 5)]
)
def test_an_error_of_the_lab_shows_message_and_fix_and_exits_with_its_code(
    run_verb: Runs, kind: type[LabError], code: int
) -> None:
    def fail() -> None:
        raise kind("No port 7 in [2001:db8::1]:7.", fix="start the server first.")

    result = run_verb(fail)

    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr == "No port 7 in [2001:db8::1]:7.\nFix: start the server first.\n"


def test_ctrl_c_exits_with_130(run_verb: Runs) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    result = run_verb(interrupted)

    assert (result.exit_code, result.stderr) == (INTERRUPTED, "Interrupted.\n")


def test_after_ctrl_c_what_ends_with_the_process_is_still_ended() -> None:
    program = (
        "import atexit\n"
        "from lab.cli import app\n"
        "atexit.register(print, 'ended')\n"
        "def interrupted(**_):\n    raise KeyboardInterrupt\n"
        "app.app = interrupted\n"
        "app.main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)

    assert (ran.returncode, ran.stdout) == (INTERRUPTED, "ended\n")


def test_a_verb_chooses_its_exit_code(run_verb: Runs) -> None:
    def refuted() -> None:
        raise typer.Exit(1)

    assert run_verb(refuted).exit_code == 1


def test_an_unforeseen_error_is_one_line_and_never_reads_as_refuted(run_verb: Runs) -> None:
    result = run_verb(nothing_there)

    assert result.exit_code == BUG
    assert "IndexError: list index out of range" in result.stderr
    assert "LAB_DEBUG=1" in result.stderr
    assert "Traceback" not in result.stderr


def test_lab_debug_shows_the_traceback(run_verb: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_DEBUG", "1")

    result = run_verb(nothing_there)

    assert result.exit_code == BUG
    assert "Traceback (most recent call last)" in result.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_stream_that_the_caller_closed_changes_no_exit_code(closed: str) -> None:
    for argv, code in (("live run", 0), ("live run NOPE", 2)):
        command = f"exec {sys.executable} -m lab {argv} {closed}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert ("Standard output is closed" in done.stderr) is (closed == ">&-"), done.stderr


@pytest.mark.parametrize(("full", "argv", "code"), [(">", "live run", 5), ("2>", "live run NOPE", 2)])
def test_a_stream_on_a_full_disk_is_nothing_refuted(full: str, argv: str, code: int) -> None:
    command = f"exec {sys.executable} -m lab {argv} {full}/dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == code, done.stderr
