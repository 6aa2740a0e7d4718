"""The program that the README shows, on google-genai as it comes, against the lab's session server."""

import re
from pathlib import Path

from tests.conformance.conftest import PROGRAM_S, ROOT, Stage


def test_the_program_shown_prints_what_is_said_of_it(stage: Stage, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(import asyncio\n\nfrom google import genai\n.*?)```", readme, re.DOTALL)
    (tmp_path / "shown.py").write_text(program, encoding="utf-8")

    command = (str(stage.python), str(tmp_path / "shown.py"))
    process = stage.testbed.client.spawn(command, env=stage.environment)
    status = process.wait(PROGRAM_S)
    printed = [line.text for line in process.lines if line.stream == "stdout"]

    assert status == 0, process.lines
    (said,) = re.findall(r"this prints\s`(.*)`:", readme)
    assert printed == [said]
