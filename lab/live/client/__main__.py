"""``python -m lab.live.client``."""

import sys

from lab.live.client.program import main

if __name__ == "__main__":
    sys.exit(main())
