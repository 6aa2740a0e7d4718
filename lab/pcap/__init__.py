"""Capture files: written raw, read as segments."""
