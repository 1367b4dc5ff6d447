"""Tables and their changes as Spark DataFrames."""
