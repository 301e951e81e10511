"""The operator process: kopf watches, the supervisor runs the engines. The only package that imports kopf."""
