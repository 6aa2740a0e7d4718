import os
import signal
import sys
import time
from pathlib import Path

import pytest

from lab.core.errors import UsageError
from lab.testbed.agent.process import AgentProcess
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import Line


def shell(testbed: NetnsTestbed, script: str) -> AgentProcess:
    return testbed.client.spawn(["sh", "-c", script])


def texts(lines: list[Line]) -> list[tuple[str, str]]:
    return [(line.stream, line.text) for line in lines]


def finished(process: AgentProcess) -> AgentProcess:
    """The process, after its exit and the end of both streams."""
    process.wait(10)
    with pytest.raises(TimeoutError):
        process.wait_for_line("a line that never comes", 10)
    return process


def test_lines_of_both_streams_are_stamped_and_kept_in_order(testbed: NetnsTestbed) -> None:
    before = time.monotonic()
    process = shell(testbed, "echo one; read line; echo two >&2; read line; printf 'no newline'")
    for line in ("one", "two"):
        process.wait_for_line(line, 10)
        process.write("go on\n")
    finished(process)
    after = time.monotonic()

    assert texts(list(process.lines)) == [("stdout", "one"), ("stderr", "two"), ("stdout", "no newline")]
    stamps = [line.at for line in process.lines]
    assert process.exited_at is not None
    assert [before, process.started_at, *stamps, after] == sorted([before, process.started_at, *stamps, after])


def test_undecodable_octets_become_escapes(testbed: NetnsTestbed) -> None:
    assert finished(shell(testbed, r"printf 'caf\351\n'")).lines[0].text == r"caf\xe9"


def test_a_line_is_found_by_pattern_from_an_instant_on(testbed: NetnsTestbed) -> None:
    process = shell(testbed, "echo tick 1; read line; echo tick 2; read line")
    first = process.wait_for_line(r"tick \d", 10)
    process.write("go\n")

    second = process.wait_for_line(r"tick \d", 10, since=first.at + 1e-9)

    assert (first.text, second.text) == ("tick 1", "tick 2")
    assert process.returncode is None
    process.close_stdin()
    assert process.wait(10) == 1


def test_every_line_is_heard_once_in_order_those_before_too(testbed: NetnsTestbed) -> None:
    process = shell(testbed, "echo one; echo two; read line; echo three >&2; printf rest")
    process.wait_for_line("two", 10)
    heard: list[Line] = []
    process.listen(heard.append)
    assert [line.text for line in heard] == ["one", "two"]
    process.write("go\n")
    finished(process)

    assert [line.text for line in heard] == ["one", "two", "three", "rest"]
    assert heard == list(process.lines)


def test_a_line_that_never_comes_is_reported_with_the_last_lines(testbed: NetnsTestbed) -> None:
    process = shell(testbed, "echo what came instead; exec sleep 60")
    process.wait_for_line("what", 10)

    with pytest.raises(TimeoutError, match=r"(?s)'never'.*0\.05 s; it still runs.*stdout: what came instead"):
        process.wait_for_line("never", 0.05)
    process.send_signal(signal.SIGKILL)


def test_a_pattern_that_is_none_is_the_authors_mistake(testbed: NetnsTestbed) -> None:
    process = shell(testbed, "echo something")

    with pytest.raises(UsageError, match="not a regular expression"):
        process.wait_for_line("(", 10)


def test_waiting_for_a_line_ends_with_the_program(testbed: NetnsTestbed) -> None:
    process = shell(testbed, "exit 3")
    began = time.monotonic()

    with pytest.raises(TimeoutError, match="it exited with 3"):
        process.wait_for_line("never", 30)
    assert time.monotonic() - began < 10


def test_exit_status_and_signals(testbed: NetnsTestbed) -> None:
    assert shell(testbed, "exit 7").wait(10) == 7
    process = testbed.server.spawn(["sleep", "60"])
    with pytest.raises(TimeoutError, match=r"did not exit within 0\.01 s"):
        process.wait(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    process.send_signal(signal.SIGTERM)


def test_a_command_starts_with_default_signals_and_only_its_own_descriptors(testbed: NetnsTestbed) -> None:
    # Signals 32 and 33 are the C library's own: no program can set them, and they are inherited from the caller.
    code = (
        "import os; print([f'{int(line.split()[1], 16) & ~(3 << 31):016x}'"
        " for line in open('/proc/self/status') if line[:6] in ('SigIgn', 'SigBlk')]);"
        "print(sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:-1])"
    )
    process = finished(testbed.client.spawn([sys.executable, "-S", "-c", code]))

    # Python itself ignores SIGPIPE (13) and SIGXFSZ (25).
    ignored = f"{(1 << 12) | (1 << 24):016x}"
    assert [line.text for line in process.lines] == [f"['{0:016x}', '{ignored}']", "[0, 1, 2]"]


def test_the_process_id_is_the_callers(testbed: NetnsTestbed) -> None:
    process = testbed.client.spawn(["sh", "-c", "echo up; read line", "by-this-name"])
    process.wait_for_line("up", 10)

    assert "by-this-name" in Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL


def test_environment_and_folder_are_the_callers_unless_given(testbed: NetnsTestbed, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_INHERITED", "yes")
        here = finished(shell(testbed, 'pwd; echo "$LAB_INHERITED$LAB_ADDED"'))
        there = finished(
            testbed.client.spawn(
                ["sh", "-c", 'pwd; echo "$LAB_INHERITED$LAB_ADDED"'], env={"LAB_ADDED": " too"}, cwd=tmp_path
            )
        )

    assert [line.text for line in here.lines] == [str(Path.cwd()), "yes"]
    assert [line.text for line in there.lines] == [str(tmp_path), "yes too"]


def test_the_commands_uid_is_the_callers(testbed: NetnsTestbed) -> None:
    assert finished(testbed.client.spawn(["id", "-u"])).lines[0].text == str(os.geteuid())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["no-such-program"], "'no-such-program' is not on PATH"),
        (["/no/such/program"], "'/no/such/program' does not exist"),
        (["/etc/hostname-of-nobody/x"], "does not exist"),
        (["/etc"], "'/etc' cannot be executed"),
        (["{tmp}/plain"], "plain' cannot be executed: permission denied"),
        (["{tmp}/garbage"], "garbage' cannot be executed: Exec format error"),
        (["nul\0"], "cannot be executed"),
    ],
)
def test_what_cannot_be_started_is_named(testbed: NetnsTestbed, tmp_path: Path, argv: list[str], message: str) -> None:
    (tmp_path / "plain").write_text("echo never\n")
    (tmp_path / "garbage").write_bytes(b"\x00\x01\x02")
    (tmp_path / "garbage").chmod(0o755)

    with pytest.raises(UsageError, match=message):
        testbed.client.spawn([word.format(tmp=tmp_path) for word in argv])


def test_a_missing_folder_and_a_shell_string_are_the_authors_mistakes(testbed: NetnsTestbed) -> None:
    with pytest.raises(UsageError, match="/no/such/folder does not exist"):
        testbed.client.spawn(["true"], cwd=Path("/no/such/folder"))
    with pytest.raises(UsageError, match="list of words"):
        testbed.client.spawn("echo never")
    with pytest.raises(UsageError, match="list of words"):
        testbed.client.spawn([])


def test_input_larger_than_the_pipe_arrives_whole(testbed: NetnsTestbed) -> None:
    process = shell(testbed, "sleep 0.2; wc -c")
    process.write("x" * 1_000_000)
    process.close_stdin()

    assert finished(process).lines[0].text.strip() == "1000000"


def test_writing_to_a_program_that_has_ended_fails(testbed: NetnsTestbed) -> None:
    process = shell(testbed, "exit 0")
    process.wait(10)

    with pytest.raises(BrokenPipeError, match="has ended"):
        process.write("too late")


def test_a_hundred_thousand_lines_arrive_whole(testbed: NetnsTestbed) -> None:
    process = testbed.client.spawn(["seq", "1", "100000"])

    last = process.wait_for_line("^100000$", 30)

    assert len(process.lines) == 100_000
    assert process.lines[-1] == last
    assert process.lost_bytes == 0


def test_a_flood_neither_blocks_the_agent_nor_goes_uncounted(testbed: NetnsTestbed) -> None:
    flood = testbed.client.spawn(["sh", "-c", "head -c 200000000 /dev/zero | tr '\\0' 'x'; echo; echo the end"])
    slowest = 0.0
    while flood.returncode is None:
        began = time.monotonic()
        testbed.client.read_sysctl("net.ipv4.ip_forward")
        slowest = max(slowest, time.monotonic() - began)
    finished(flood)

    assert flood.returncode == 0
    received = sum(len(line.text) for line in flood.lines)
    assert flood.lost_bytes > 0
    assert received + flood.lost_bytes >= 200_000_000 - (1 << 20)
    assert received < 40_000_000
    assert slowest < 2


def test_output_of_a_descendant_is_kept_after_the_exit(testbed: NetnsTestbed) -> None:
    process = shell(testbed, "(sleep 0.2; echo from the background) & echo from the front")

    assert process.wait(10) == 0
    assert process.exited_at is not None
    assert process.wait_for_line("background", 10).at > process.exited_at
