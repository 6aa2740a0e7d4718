"""docs/testcontainers.md shows tests; each runs as it stands, but for the names of the images."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.testcontainers import Router, Testbed

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "testcontainers.md").read_text(encoding="utf-8")
TESTS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("shown", TESTS, ids=re.findall(r"def (test_\w+)", TEXT))
def test_each_test_shown_passes(shown: str, app: str, tmp_path: Path) -> None:
    code = shown.replace('"my-server"', repr(app)).replace(
        'DockerContainer("my-client")', f'DockerContainer({app!r}).with_command(["/app/client.py"])'
    )
    (tmp_path / "test_shown.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shown.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "my-client" not in code
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_shows_the_first_of_them() -> None:
    assert TESTS[0] in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_public_name_is_explained() -> None:
    for kind in (Testbed, Router):
        own = [
            name
            for name in vars(kind)
            if not name.startswith("_")
            and name not in ("start", "stop", "control", "get_container_host_ip", "get_exposed_port")
        ]
        assert [name for name in own if not re.search(rf"`{name}\b", TEXT)] == []


@pytest.mark.parametrize("link", re.findall(r"\]\((?!https?:)([^)#]+)\)", TEXT))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (ROOT / "docs" / link).exists()
