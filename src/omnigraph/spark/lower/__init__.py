"""Query plans as Spark DataFrames: a function per step, answers as of the local engine."""
