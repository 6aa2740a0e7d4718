"""Options of ``pytest lab/``; pytest looks for them here before it looks into ``experiments``."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--lab-table FILE``: predicted and observed, one row per experiment, as Markdown."""
    parser.addoption("--lab-table", type=Path, metavar="FILE", help="write predicted and observed of every run")
