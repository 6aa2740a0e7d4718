"""What the README shows of google-genai as it comes: a program, and a command that loses its connection."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.conformance.conftest import HASTE, HERE, PROGRAM_S, ROOT, Stage

README = (ROOT / "README.md").read_text(encoding="utf-8")
INVALID = 3
TRIES = 3
RUN_S = 150.0


def test_the_program_shown_prints_what_is_said_of_it(stage: Stage, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(import asyncio\n\nfrom google import genai\n.*?)```", README, re.DOTALL)
    (tmp_path / "shown.py").write_text(program, encoding="utf-8")

    command = (str(stage.python), str(tmp_path / "shown.py"))
    process = stage.testbed.client.spawn(command, env=stage.environment)
    status = process.wait(PROGRAM_S)
    printed = [line.text for line in process.lines if line.stream == "stdout"]

    assert status == 0, process.lines
    (said,) = re.findall(r"this prints\s`(.*)`:", README)
    assert printed == [said]


def test_the_command_shown_loses_a_client_s_connection_and_proves_it(python: Path, tmp_path: Path) -> None:
    """With the lab's recovery as the client; it says how it noticed, and that it has booked once."""
    client = shlex.join(["env", f"PYTHONPATH={ROOT}", str(python), "-u", str(HERE / "programs/recover.py")])
    (shown,) = re.findall(r"^    lab run (--profile study-server .*?)\n\n", README, re.DOTALL | re.MULTILINE)
    words = [
        word.replace("python client.py", client)
        .replace(".venv/bin/python", sys.executable)
        .replace("lab.live.server", "lab.live.server " + shlex.join(HASTE))
        .replace("REGEX", '"event": "silent"')
        for word in shlex.split(shown.replace("\\\n", " "))
    ]
    for number in range(TRIES):
        out = tmp_path / str(number)
        done = subprocess.run(
            [sys.executable, "-m", "lab", "run", *words, "--until", '"event": "done"', "--out", str(out)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        if done.returncode != INVALID:
            break

    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((out / "record.json").read_text())
    said = (out / "client.log").read_text()
    assert 1.4 <= record["observation"]["client"]["noticed_s"] <= 2.6
    assert said.count('"event": "refused"') == 4
    assert '"event": "bookings", "count": 1' in said
