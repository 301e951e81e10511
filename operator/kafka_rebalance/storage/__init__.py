"""Files in directories and object stores, read and written with pyarrow: the load models, and where the lake is."""
