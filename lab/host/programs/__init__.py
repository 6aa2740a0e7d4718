"""What ``python -m lab.host`` runs.

::

    main        runs one of the three
    options     the command line of all three
    job         a job with a scripted agent, led by its options or by hand
    simulator   its user
    relay       for a host and a remote that both connect
    typed       lines of standard input, for one that is led by hand
    common      what keeps one from beginning, how it ends where nobody reads it; one transport; a verdict in words
"""
