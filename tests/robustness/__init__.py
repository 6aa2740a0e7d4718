"""The lab when it is killed, starved, crowded or lied to: no trace on the host, and never a wrong verdict."""
