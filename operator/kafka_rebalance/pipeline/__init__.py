"""Samples to Parquet, Spark to load model. The only package that imports pyspark."""
