"""Starts a Spark executor in a Pod: what the entrypoint of Spark's own image does, for the image of the pipeline.

python -m kafka_rebalance.pipeline.spark_executor executor

Spark describes the executor in environment variables (SPARK_EXECUTOR_ID, …). This process becomes the executor.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(env: Mapping[str, str], jars: str) -> list[str]:
    """The command line of the executor. Raises KeyError with the variable if Spark did not set one."""
    found = {int(at[1]): value for name, value in env.items() if (at := re.fullmatch(r"SPARK_JAVA_OPT_(\d+)", name))}
    memory = env["SPARK_EXECUTOR_MEMORY"]
    java = f"{env['JAVA_HOME']}/bin/java" if env.get("JAVA_HOME") else "java"
    classes = [place for place in (env.get("SPARK_CONF_DIR"), env.get("HADOOP_CONF_DIR"), f"{jars}/*") if place]
    arguments = [word for option, name in _ARGUMENTS.items() for word in (option, env[name])]
    options = [found[at] for at in sorted(found)]
    return [java, *options, f"-Xms{memory}", f"-Xmx{memory}", "-cp", ":".join(classes), _BACKEND, *arguments]


def main() -> None:
    """Become the executor."""
    found = importlib.util.find_spec("pyspark")
    if sys.argv[1:] != ["executor"] or found is None or found.origin is None:
        sys.exit("this is started by Spark, in Pods with the image of the pipeline: see docs/pipeline.md")
    try:
        words = command(os.environ, str(Path(found.origin).with_name("jars")))
    except KeyError as missing:
        sys.exit(f"{missing.args[0]} is not set: only Spark starts executors")
    os.execvp(words[0], words)  # noqa: S606 - no shell is meant


if __name__ == "__main__":
    main()
