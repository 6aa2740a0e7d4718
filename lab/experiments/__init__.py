"""What ``pytest lab/`` runs: one question per file, predicted, then measured."""
