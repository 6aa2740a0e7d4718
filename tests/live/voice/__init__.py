"""Tests of clips and recognition."""
