"""The process that reads the captures for a verdict: one question on standard input, one answer on standard output."""

import pickle
import sys

from lab.control.examination import Evidence, find
from lab.core.errors import InvalidRun, LabError


def main() -> None:
    """Answer the question."""
    question = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the controller that started this process
    answer: Evidence | LabError
    try:
        answer = find(question)
    except LabError as error:
        answer = InvalidRun(error.message, fix=error.fix)
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main()
