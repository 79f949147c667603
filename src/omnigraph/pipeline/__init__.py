"""The data pipeline on Apache Spark: the only importer of pyspark."""
