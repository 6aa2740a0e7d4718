"""Tests of lab.live.session."""
