"""One run, from specification to verdict.

::

    spec ──> arrange ──> connect ──> forecast ──> cut ──> watch ──> collect ──> checks ──> conclude
             testbed,    the flow,   before       router  agenda:   witnesses,  proofs,    record,
             server,     found and   the cut              act, heal each on     then the   folder
             bystander   talking                                    one clock   prediction

``runner`` goes through it. What ``collect`` brings together is read by a module of its own each: ``settle`` (counters
and rules at rest), ``sides`` (captures), ``ends`` with ``traffic``, ``fate`` and ``noticing`` (wire, kernel, program),
and ``bystander``; ``findings`` holds all of it. ``checks`` are ``proofs`` and ``predictions``.
"""
