"""`certify` for Ray Tune: new evaluations of the best configurations of a finished experiment."""
