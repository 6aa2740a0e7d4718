"""Options of ``pytest lab/``; pytest looks for them here before it looks into ``experiments``."""

from pathlib import Path

import pytest

from lab.run.backend import BACKENDS


def pytest_addoption(parser: pytest.Parser) -> None:
    """The lab's own options."""
    parser.addoption("--lab-table", type=Path, metavar="FILE", help="write predicted and observed of every run")
    parser.addoption(
        "--backend",
        choices=(*BACKENDS, "both"),
        default="auto",
        help="where the experiments run; auto by default; both compares the two",
    )
    parser.addoption("--lab-equivalence", type=Path, metavar="FILE", help="with both: write how they compare")
