"""Tests of lab.live.recovery."""
