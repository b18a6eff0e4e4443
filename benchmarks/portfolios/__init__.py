"""How the portfolios that are shipped are made, and what they are worth on other data sets."""
