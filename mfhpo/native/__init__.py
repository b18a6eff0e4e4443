"""Machine code: loops that are compiled where Numba is installed, and threads of linear algebra."""
