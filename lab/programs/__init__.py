"""The lab's own client and server, which the demo and the experiments run in the nodes.

Standard library only, so that any Python runs them. Each prints one JSON object per line: ``at`` (CLOCK_MONOTONIC
seconds), ``event`` and what belongs to it; standard input takes one command per line.

=========== ============================================================================================
event       with
=========== ============================================================================================
listening   ``port``
connecting  ``local``, ``remote`` as [address, port]
connected   ``local``, ``remote`` as [address, port]
accepted    ``connection`` (1, 2, ...), ``local``, ``remote``
sent        ``bytes`` that the kernel took, ``total``
blocked     ``total``: the send buffer is full; said once until the kernel takes more
received    ``bytes``, ``total``
eof         ``total`` received; the peer ends its direction
error       ``errno`` (name), ``during`` connect / send / wait, ``second_read``: what one more read gives
closed      ``sent``, ``received``
=========== ============================================================================================

The server's events about a connection carry its ``connection`` too.
"""
