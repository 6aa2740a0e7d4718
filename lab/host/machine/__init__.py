"""Pure machines of a session host, its job and its remote: events in, commands out, instants as arguments."""
