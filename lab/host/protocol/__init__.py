"""What a session host and its remote say to each other, and how it is put into octets."""
