"""Runs in containers, one after the other, until this process is killed; each cuts a flow of the lab's own programs."""

import sys
import tempfile
from pathlib import Path

from lab.core.timeline import Observation
from lab.run.runner import Run
from lab.testbed.docker import open_testbed
from tests.robustness.runs import spec


def tell(news: str) -> None:
    sys.stdout.write(f"{news}\n")
    sys.stdout.flush()


def narrate(observation: Observation) -> None:
    if observation.kind == "cut":
        tell("cut")


def main() -> None:
    """Say what is reached: begun, and cut for every cut."""
    tell("begun")
    while True:
        with tempfile.TemporaryDirectory(dir=sys.argv[1]) as out:
            Run(spec(), open_testbed, out=Path(out), tell=narrate).execute()


if __name__ == "__main__":
    main()
