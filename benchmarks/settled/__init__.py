"""When rules stop studies, what that saves and what it loses."""
