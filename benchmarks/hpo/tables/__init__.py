"""Tables of recorded trainings, and the command that builds them."""
