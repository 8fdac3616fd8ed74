"""How a log is walked: in memory, in chunks from files, on a Dask or a Spark cluster.

An engine makes a log ready as a `Source`, whose walks hand every block of whole units to a task and
add up what the tasks return; kernels, inference and results are the same for all. May import from
the rooms up to `results`; of the outside world duckdb, dask, pyspark and pyarrow, each when it is
first used.
"""
