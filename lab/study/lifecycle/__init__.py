"""How sessions end: tables of a client session as published, with its repair, and as the lab has it.

::

    interleaving  coroutines stepped by hand: in a forced order, at random, or in every order that there is
    race          a close of our own against the receive that fails at it
    session_race  its two orders once more, through a whole session
    closes        every close code, who sent it and how, and what the application is told
    leaks         released or closed on every path: who sees the end, and when
    limit         an application that reconnects without closing, against the server's limit
    rules         how the four servers differ, as a session sees it
    tables        all of them, measured side by side
    predictions   what each row should show, and what contradicts it
    servers       the session servers of the four endpoints, and their own count of connections
    book          what a server tells of its connections, as it happens
    stage         where sessions meet a server, and what is left of one that was left
    ways          the paths by which a session is left, one function each
    elsewhere     those of other threads and processes
    witnesses     server, kernel, and who is still there: each with the time at which it saw the end
"""
