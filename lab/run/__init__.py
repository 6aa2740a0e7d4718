"""One run, from specification to verdict.

::

    spec ──> arrange ──> forecast ──> cut ──> watch ──> evidence ──> checks ──> record
             testbed,    before       router   until     captures,    proofs,    folder
             programs,   the cut               fates     samples,     then the
             flow                              known     output       prediction
"""
