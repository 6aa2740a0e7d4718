"""The study of lost live sessions: what is run, what is expected of it, what came of it.

::

    scenario      what a session is made of, and what is expected of it
    steps         the assistant's script, as JSON
    scenarios     all of them; round_one, frozen, packet_loss, recovered: the study's; new_ground, sweep: what it left
                  open; ranges: those that several share
    running       one session performed in a testbed: as a run of the lab where packets are lost, else by ``plain``
    commands      the command lines of its programs
    session_record    what it left behind
    performing    from a task of the matrix to a session with its quantities
    reading       a session's events, and the questions that are asked of them
    proofs        whether it can be believed
    outcome       from its events to its quantities
    judgement     quantities against expectations, per session and per row
    statistics    intervals, medians, quantiles
    matrix        all sessions side by side; results: each kept as soon as it is there
    narrative     a session's events in words
    table, findings, figures    what people read; publish: what a study leaves
"""
