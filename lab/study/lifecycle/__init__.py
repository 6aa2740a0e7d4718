"""How sessions end: tables of a client session as published, with its repair, and as the lab has it.

::

    interleaving  coroutines stepped by hand: in a forced order, at random, or in every order that there is
    race          a close of our own against the receive that fails at it
    closes        every close code, who sent it, and what the application is told
    leaks         released or closed on every path: does the server see the end, and when
    tables        all of them, measured side by side
    limit         an application that reconnects without closing, against the server's limit
    servers       the session servers of the four endpoints, and their own count of connections
    census        those counts over time
    ways          the paths by which a session is left, one function each
"""
