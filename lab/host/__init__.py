"""Hosts that outlive their sessions: a session host, its remote, the job that owns it and the simulator that drives it.

::

    protocol/   the message set of livekit-agents 1.8.9 and ``session_closed``; frames; octets
    machine/    pure: the lives of a host, a job and a remote, as tables and machines; variants with a defect each
    shell/      the same on asyncio, over framed TCP and over WebSocket; a scripted agent, a simulator;
                a relay for a host and a remote that both connect
    tables/     what packet loss has no part in: how an end is told, a host without a session, the end of a simulation
    program     a job, a simulator or a relay as a program: ``python -m lab.host``
    typed       lines of standard input, for one that is led by hand

A host serves one remote over one transport. The job owns the host of its room; sessions attach to it and detach from
it. A session in another room has a host of its own.
"""
