"""The Live protocol: messages of both directions, their JSON, paths and close codes."""
