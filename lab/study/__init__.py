"""The study of lost live sessions: what is run, what is expected of it, what came of it.

::

    scenario      what a session is made of, and what is expected of it
    steps         the assistant's script, as JSON
    scenarios     all of them; round_one, frozen, packet_loss, recovery: the study's; new_ground: what it left open
    running       one session performed in a testbed: as a run of the lab where packets are lost, else by ``plain``
    commands      the command lines of its programs
    session_record    what it left behind
    performing    from a task of the matrix to a session with its quantities
    outcome       from a session's events to its quantities
    judgement     quantities against expectations, per session and per row
    statistics    intervals, medians, quantiles
    matrix        all sessions side by side, each kept as soon as it is there
    table, findings, figures    what people read
"""
