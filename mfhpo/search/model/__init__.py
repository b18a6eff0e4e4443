"""The Gaussian process of a search: what it learns from, and what is worth trying by it."""
