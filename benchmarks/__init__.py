"""Figures that the project claims, each a ratio measured in one run."""
