"""What ``python -m lab.host`` runs.

::

    options     the command line of all three
    job         a job with a scripted agent, led by its options or by hand
    simulator   its user
    common      what both have: one transport, and what they say of a verdict

The relay is ``lab.host.shell.relay``.
"""
