"""Query plans as Spark DataFrames: one function per step, answers as the local engine gives them."""
