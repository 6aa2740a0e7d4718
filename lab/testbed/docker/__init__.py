"""The container backend."""
