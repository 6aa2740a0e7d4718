"""Finds what to say among the clips that are shipped."""

import wave
from pathlib import Path

import lab.live
from lab.core.errors import EnvironmentNotReady, UsageError
from lab.live.client.speaking import Clip

_FOLDER = Path(lab.live.__file__).parent / "voice" / "clips"


def find_clip(name: str) -> Clip:
    """A shipped clip.

    Raises:
        UsageError: there is none of that name.
        EnvironmentNotReady: the clips are not installed.
    """
    try:
        lines = (_FOLDER / "clips.txt").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise EnvironmentNotReady("The clips are not installed.", fix="install the lab anew") from error
    texts = dict(line.split("|", 1) for line in lines)
    if name not in texts:
        raise UsageError(f"There is no clip {name!r}.", fix=f"one of {', '.join(texts)}")
    with wave.open(str(_FOLDER / f"{name}.wav"), "rb") as file:
        return Clip(name, texts[name], file.readframes(file.getnframes()))
