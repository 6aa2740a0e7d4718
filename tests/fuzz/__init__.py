"""Hostile input: no crash but the lab's own errors, no hang, bounded memory."""
