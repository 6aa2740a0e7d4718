"""The lab's own programs, each with one thing wrong that its verdict must not miss."""
