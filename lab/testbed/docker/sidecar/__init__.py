"""``lab attach``: a container of the lab's joins the network of a user's, cuts, and restores."""
