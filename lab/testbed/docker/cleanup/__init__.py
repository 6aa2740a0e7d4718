"""Removes what a process that has ended left on the engine: the reaper and its guards, and ``lab clean``'s part."""
