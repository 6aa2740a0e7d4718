"""The record of a run, and what is drawn and written from it alone."""
