"""Clips of speech, and what was said in them."""
