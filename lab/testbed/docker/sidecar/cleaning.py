"""Inside a container that has joined another one's network namespace: takes back what a killed attachment left."""

import sys

from lab.testbed.restore import restore


def main() -> None:
    """Restore, and say what was there."""
    for one in restore():
        sys.stdout.write(f"removed {one}\n")


if __name__ == "__main__":
    main()
