"""Tests of what acts inside a node."""
