"""The server's sessions, pure: which handle is locked, what a session keeps between its connections, and profiles."""
