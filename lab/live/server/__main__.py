"""``python -m lab.live.server``."""

import sys

from lab.live.server import main

if __name__ == "__main__":
    sys.exit(main())
