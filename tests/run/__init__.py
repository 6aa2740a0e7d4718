"""Tests of lab.run."""
