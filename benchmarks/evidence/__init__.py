"""The figures that README and docs state, made from the files in benchmarks/results."""
