"""Live sessions: a session server and a client that survive silent loss, and the protocol between them.

Pure, without clock, socket or randomness; instants are arguments, in seconds of the session's clock::

    protocol/   messages of both directions, their JSON, paths and close codes
    session/    the server's state machine: handles, locks, pending calls; profiles as data
    model/      the scripted model behind a session, and when speech ends
    recovery/   the client's side: liveness, ledger, business keys, the policy after a loss, playback
    timelapse   how session time runs faster than the wall during a long wait

Shells around them::

    clock       session time on asyncio
    server/     sessions over WebSocket, their certificates, their status page
    client/     the reference client, its link, its bookings, and the same policy on google-genai
    lifecycle/  a client session that closes when it is released, beside the published one that does not
    voice/      clips, and what was said in them
"""
