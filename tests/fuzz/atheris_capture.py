"""Coverage-guided fuzzing of the capture readers and the classifier with atheris, which is optional.

    python -m tests.fuzz.atheris_capture -max_total_time=120 CORPUS_FOLDER

Takes libFuzzer's options; a crash is written to a file that reproduces it when given as the argument.
"""

import sys
import tempfile
from pathlib import Path

import atheris
import scapy.layers.all  # noqa: F401 - else the first rare link type would pay for it and look like a hang

with atheris.instrument_imports(include=["lab"]):
    from tests.fuzz.target import explain_bytes


def main() -> None:
    """Run until the limit given on the command line."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "capture"

        def one(data: bytes) -> None:
            explain_bytes(data, scratch)

        atheris.Setup(sys.argv, one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
