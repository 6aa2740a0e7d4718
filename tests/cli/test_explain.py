import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pcap import build


def lab(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lab", *argv], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def dark(tmp_path: Path) -> Path:
    """A flow that is dark from its request on, and its IPv6 twin."""
    frames = []
    for at in (0, 0.2, 0.4, 0.8, 1.6, 3.2):
        request = build.tcp(seq=100, flags=0x18, payload=b"request")
        frames += [
            (10 + at, build.ethernet(build.ipv4(request))),
            (10 + at, build.ethernet(build.ipv6(request), 0x86DD)),
        ]
    path = tmp_path / "dark.pcap"
    path.write_bytes(build.pcap(frames))
    return path


def test_json_is_one_object_on_standard_output(dark: Path) -> None:
    shown = lab("explain", "--json", str(dark))

    assert (shown.returncode, shown.stderr) == (0, "")
    result = json.loads(shown.stdout)
    assert [flow["client"] for flow in result["flows"]] == ["192.0.2.1:40000", "[2001:db8::1]:40000"]
    for flow in result["flows"]:
        assert flow["assumed"] is True
        assert flow["silence"]["since_s"] == 0
        assert [copy["class"] for copy in flow["copies"]] == ["tail-loss-probe"] + 4 * ["timeout-copy"]
        assert flow["last_copy_s"] == 3.2


def test_people_get_sentences_within_eighty_columns(dark: Path) -> None:
    shown = lab("explain", str(dark))

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "silence   since 0.000 s, both directions" in shown.stdout
    assert "[2001:db8::1]:40000 > [2001:db8::2]:5000  (client assumed)" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_a_truncated_capture_is_explained_as_far_as_it_goes(dark: Path) -> None:
    dark.write_bytes(dark.read_bytes()[:-5])
    shown = lab("explain", "--json", str(dark))

    assert shown.returncode == 0
    result = json.loads(shown.stdout)
    assert result["truncated"] == "is cut off inside a record"
    assert "11 frames could be read, the rest is missing" in result["notes"][0]


@pytest.mark.parametrize("data", [b"", b"no capture", build.pcap([(1, build.ethernet(bytes(28), 0x0806))])])
def test_what_cannot_be_explained_is_the_authors_mistake(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(data)
    shown = lab("explain", "--json", str(path))

    assert (shown.returncode, shown.stdout) == (2, "")
    assert "expected" in shown.stderr
    assert "Fix: " in shown.stderr


def test_nothing_heavy_is_imported(dark: Path) -> None:
    program = (
        "import sys\nfrom lab.cli.explain import explain\nfrom pathlib import Path\n"
        "explain(Path(sys.argv[1]), as_json=True)\n"
        "print([m for m in ('scapy', 'matplotlib', 'pydantic', 'pyroute2') if m in sys.modules], file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", program, str(dark)], capture_output=True, text=True, check=True)

    assert shown.stderr == "[]\n"
