"""Clients of others, unmodified, against the lab's session server in the lab's testbed."""
