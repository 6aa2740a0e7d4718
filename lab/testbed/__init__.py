"""Client, router and server: where programs run and where the fault is made.

``ports`` says what a backend offers; ``netns`` is the embedded one.
"""
