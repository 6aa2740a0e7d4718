"""What is measured apart is measured in another process, again where it was INVALID, and never made good by that."""

import os
from functools import partial
from pathlib import Path

import pytest

from lab.core.errors import InvalidRun
from lab.experiments.apart import TRIES, apart


def disturbed(times: int, notes: Path) -> int:
    """INVALID so many times; then which process it was."""
    with notes.open("a") as file:
        file.write("tried\n")
    tries = len(notes.read_text().splitlines())
    if tries <= times:
        raise InvalidRun(f"too busy at try {tries}", fix="wait")
    return os.getpid()


def wrong(notes: Path) -> None:
    with notes.open("a") as file:
        file.write("tried\n")
    raise ValueError("wrong")


def test_it_is_another_process_and_a_disturbed_try_is_repeated(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    assert apart(partial(disturbed, TRIES - 1, notes)) != os.getpid()
    assert len(notes.read_text().splitlines()) == TRIES


def test_what_is_invalid_at_every_try_stays_invalid(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match=f"too busy at try {TRIES} Fix: wait"):
        apart(partial(disturbed, TRIES, tmp_path / "notes"))


def test_what_is_wrong_is_wrong_at_once(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    with pytest.raises(ValueError, match="wrong"):
        apart(partial(wrong, notes))
    assert notes.read_text() == "tried\n"
