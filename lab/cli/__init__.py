"""The ``lab`` command: one module per verb, heavy imports inside the verbs."""
