"""The making of the portfolios that are shipped, and their worth on other data sets."""
