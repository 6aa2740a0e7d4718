"""Tests of the embedded backend."""
