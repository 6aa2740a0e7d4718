"""The images, compose.yaml, and what brings an engine to CI."""
