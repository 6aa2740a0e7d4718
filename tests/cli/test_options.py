"""Option texts become values; errors name the option and what would have been right."""

from pathlib import Path

import pytest

from lab.cli.options import command, duration, enum_value, far_end, find_profile, line_trigger, sysctls
from lab.core.errors import UsageError
from lab.core.fault import Cut
from lab.core.uplink import Uplink
from lab.run.spec import Program
from lab.run.trigger import LineTrigger


def test_a_command_is_split_into_words_without_any_shell() -> None:
    assert command("--client", "nc 'my host' 5000 > $HOME") == ("nc", "my host", "5000", ">", "$HOME")


@pytest.mark.parametrize("text", ["", "   ", "'open"])
def test_no_command_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--client"):
        command("--client", text)


def test_a_server_is_in_the_testbed_or_outside() -> None:
    own, outside, port = far_end("srv -v", None, 5000, None, ipv6=False)
    assert (own, outside, port) == (Program(("srv", "-v")), None, 5000)

    own, outside, port = far_end(None, None, None, "203.0.113.9:443", ipv6=False)
    assert (own, outside, port) == (None, Uplink("203.0.113.9", 443, "203.0.113.9"), 443)


@pytest.mark.parametrize(
    ("server", "image", "port", "uplink", "said"),
    [
        ("srv", None, None, "203.0.113.9:443", "do not go with it"),
        (None, "srv:1", None, "203.0.113.9:443", "do not go with it"),
        (None, None, 443, "203.0.113.9:443", "do not go with it"),
        ("srv", None, None, None, "port is missing.*or --uplink HOST:PORT"),
        (None, None, 5000, None, "nothing to run in the server node"),
        (None, None, None, "127.0.0.1:443", "loopback"),
    ],
)
def test_half_a_server_or_two_are_refused(
    server: str | None, image: str | None, port: int | None, uplink: str | None, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        far_end(server, image, port, uplink, ipv6=False)


def test_durations_are_seconds_and_errors_name_their_option() -> None:
    assert duration("--for", "1.5m") == 90
    with pytest.raises(UsageError, match="--for: Expected a duration, got 'long'") as caught:
        duration("--for", "long")
    assert "500ms" in (caught.value.fix or "")


def test_a_line_is_followed_at_once_or_after_a_while_and_none_where_none_was_given() -> None:
    assert line_trigger("--cut-when", None, "--cut-after", "2s") is None
    assert line_trigger("--cut-when", "server:^up", "--cut-after", "2s") == LineTrigger("server", "^up", 2.0)
    assert line_trigger("--until", "done") == LineTrigger("client", "done")
    with pytest.raises(UsageError, match="--until: '\\(' is no regular expression"):
        line_trigger("--until", "(")


def test_a_member_is_named_by_its_value() -> None:
    assert enum_value("--direction", Cut, "return") is Cut.RETURN
    with pytest.raises(UsageError, match="--direction is one of both, forward, return; 'BOTH' is none"):
        enum_value("--direction", Cut, "BOTH")


def test_sysctls_are_gathered_per_node_and_the_last_one_wins() -> None:
    texts = ["client:net.ipv4.tcp_retries2=5", "client:net/ipv4/tcp_sack=0", "server:net.ipv4.tcp_rmem=1 2 3"]

    assert sysctls([*texts, "client:net.ipv4.tcp_retries2=6"]) == {
        "client": {"net.ipv4.tcp_retries2": "6", "net.ipv4.tcp_sack": "0"},
        "server": {"net.ipv4.tcp_rmem": "1 2 3"},
    }


@pytest.mark.parametrize("text", ["", "client", "client:key", "client:key=", ":key=1", "client:=1", "key=1"])
def test_half_a_sysctl_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NODE:KEY=VALUE"):
        sysctls([text])


def test_a_profile_comes_by_name_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "quick.toml"
    file.write_text('description = "mine"\n[sysctls]\ntcp_retries2 = 4\n')

    assert find_profile("fast").name == "fast"
    mine = find_profile(str(file))
    assert mine.name == "quick"
    assert mine.settings().retries2 == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"tcp_retries2 = ", "no TOML"), (b"\xff\xfe", "no TOML"), (b"[sysctl]\n", "unknown key 'sysctl'")],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)

    with pytest.raises(UsageError, match=said):
        find_profile(str(file))


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        find_profile(str(tmp_path / "folder.toml"))
