"""``python -m lab`` is the console script ``lab``."""

from lab.cli.app import main

main()
