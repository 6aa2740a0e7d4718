"""The study of lost live sessions: what is run, what is expected of it, what came of it.

::

    scenario      what a session is made of, and what is expected of it
    steps         the assistant's script, as JSON
    scenarios     all of them; round_one, frozen, packet_loss, recovery: the study's; new_ground: what it left open
    running       one session performed in a testbed
    outcome       from a session's events to its quantities
    judgement     quantities against expectations, per session and per row
    statistics    intervals, medians, quantiles
    matrix        all sessions side by side, each kept as soon as it is there
    table, findings, figures    what people read
"""
