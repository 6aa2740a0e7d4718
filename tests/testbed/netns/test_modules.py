import os
import signal
import sys
from pathlib import Path

import pytest

from lab.core.errors import UsageError
from lab.testbed.agent.process import AgentProcess
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import TestbedSpec

PROGRAM = """
import atexit, os, socket, sys, threading
print(__name__, sys.argv[1:], socket.gethostname(), os.environ.get("LAB_ADDED"), os.getcwd(), flush=True)
atexit.register(print, "at exit")
mode = sys.argv[1]
if mode == "fail":
    raise ValueError("as a program would")
if mode == "say":
    sys.exit("a message")
if mode == "code":
    sys.exit(7)
if mode == "echo":
    for line in sys.stdin:
        print(line.strip().upper())
if mode == "look":
    status = dict(line.split(":") for line in open("/proc/self/status"))
    print(int(status["CapEff"], 16) != 0, os.geteuid() == 0, status["SigIgn"].strip())
    print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1], os.getsid(0) == os.getpid())
if mode == "connect":
    listener = socket.create_server(("localhost", 7000))
    connection = socket.create_connection(("localhost", 7000))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1234)
    print("from", connection.getsockname()[1], flush=True)
    threading.Event().wait()
if mode == "broken":
    near, far = socket.socketpair()
    far.close()
    try:
        near.send(b"x")
    except BrokenPipeError:
        print("told", flush=True)
if mode == "loaded":
    print("colorsys" in sys.modules, flush=True)
if mode == "wait":
    threading.Event().wait()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modules")
    (folder / "lab_test_program.py").write_text(PROGRAM)
    return folder


def run(testbed: NetnsTestbed, folder: Path, *argv: str) -> AgentProcess:
    return testbed.server.spawn_module("lab_test_program", argv, env={"LAB_ADDED": "x"}, cwd=folder)


def texts(process: AgentProcess) -> list[str]:
    with pytest.raises(TimeoutError):
        process.wait_for_line("a line that never comes", 10)
    return [line.text for line in process.lines]


@pytest.mark.parametrize(
    ("mode", "code", "output"),
    [
        ("none", 0, ["at exit"]),
        ("code", 7, ["at exit"]),
        ("say", 1, ["a message", "at exit"]),
    ],
)
def test_a_module_runs_and_ends_as_a_program_does(
    testbed: NetnsTestbed, folder: Path, mode: str, code: int, output: list[str]
) -> None:
    process = run(testbed, folder, mode)

    assert process.wait(10) == code
    head, *rest = texts(process)
    assert head == f"__main__ ['{mode}'] server x {folder}"
    assert sorted(rest) == sorted(output)


def test_an_exception_is_printed_and_is_exit_status_1(testbed: NetnsTestbed, folder: Path) -> None:
    process = run(testbed, folder, "fail")

    assert process.wait(10) == 1
    assert "ValueError: as a program would" in texts(process)


def test_input_and_output_are_pipes(testbed: NetnsTestbed, folder: Path) -> None:
    process = run(testbed, folder, "echo")
    process.write("hello\n")
    process.wait_for_line("^HELLO$", 10)
    process.close_stdin()

    assert process.wait(10) == 0


def test_the_program_holds_nothing_of_the_agent(testbed: NetnsTestbed, folder: Path) -> None:
    process = run(testbed, folder, "look")
    assert process.wait(10) == 0

    _, capabilities, descriptors, _ = texts(process)

    # Python itself ignores SIGPIPE (13) and SIGXFSZ (25); here nothing shall be inherited but what it sets.
    root = os.geteuid() == 0
    assert capabilities.split()[:2] == [str(root), str(root)]
    assert descriptors == "[0, 1, 2] True"


def test_a_write_to_a_connection_that_is_over_is_told_and_does_not_kill(testbed: NetnsTestbed, folder: Path) -> None:
    process = run(testbed, folder, "broken")

    assert process.wait(10) == 0
    assert "told" in texts(process)


def test_the_agent_can_read_the_programs_socket_options(testbed: NetnsTestbed, folder: Path) -> None:
    process = run(testbed, folder, "connect")
    port = int(process.wait_for_line("from", 10).text.split()[1])

    options = testbed.server.socket_options(port, 7000)

    assert options is not None
    assert options.user_timeout_s == 1.234
    process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_it(testbed: NetnsTestbed, folder: Path, number: signal.Signals) -> None:
    process = run(testbed, folder, "wait")
    process.wait_for_line("__main__", 10)
    process.send_signal(number)

    assert process.wait(10) == -number
    assert not Path(f"/proc/{process.pid}").exists()


def test_a_missing_module_or_folder_is_reported(testbed: NetnsTestbed) -> None:
    with pytest.raises(UsageError, match="/no/such/folder"):
        testbed.client.spawn_module("lab", cwd=Path("/no/such/folder"))
    process = testbed.client.spawn_module("no_such_module_anywhere")
    assert process.wait(10) == 1
    assert "no_such_module_anywhere" in texts(process)[-1]


def test_the_agent_lives_on_after_its_children(testbed: NetnsTestbed, folder: Path) -> None:
    for _ in range(3):
        assert run(testbed, folder, "code").wait(10) == 7
    assert testbed.server.spawn([sys.executable, "-c", ""]).wait(10) == 0


def test_what_is_preloaded_a_program_finds_loaded_and_what_does_not_exist_is_its_own_affair(folder: Path) -> None:
    with NetnsTestbed(TestbedSpec(preload=("colorsys", "lab.no_such_module"))) as testbed:
        assert texts(run(testbed, folder, "loaded"))[1:2] == ["True"]
