"""What the lab costs, always as a ratio to the usual way, measured in the same run."""
