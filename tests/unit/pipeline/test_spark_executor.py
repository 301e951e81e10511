from __future__ import annotations

import pytest

from kafka_rebalance.pipeline.spark_executor import command, main

ENV = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "exec-1",
    "SPARK_JAVA_OPT_10": "--last",
    "SPARK_JAVA_OPT_2": "--second",
    "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
}


class TestCommand:
    def test_is_that_of_sparks_image(self) -> None:
        """Options in their order, the backend of Kubernetes, and what Spark says of the executor."""
        assert command(ENV, "/jars") == [
            *("java", "-Dspark.driver.port=7078", "--second", "--last", "-Xms1024m", "-Xmx1024m", "-cp", "/jars/*"),
            "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
            *("--driver-url", "spark://CoarseGrainedScheduler@10.0.0.1:7078", "--executor-id", "1", "--cores", "2"),
            *("--app-id", "spark-1", "--hostname", "10.0.0.2", "--resourceProfileId", "0", "--podName", "exec-1"),
        ]

    def test_java_and_settings_may_be_elsewhere(self) -> None:
        words = command(ENV | {"JAVA_HOME": "/java", "SPARK_CONF_DIR": "/conf"}, "/jars")
        assert (words[0], words[7]) == ("/java/bin/java", "/conf:/jars/*")


def test_by_hand_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to read."""
    monkeypatch.setattr("sys.argv", ["spark_executor"])
    with pytest.raises(SystemExit, match=r"see docs/pipeline\.md"):
        main()
