"""A server and an assistant of a few lines each, which take the real ones' command lines and say their events."""
