from __future__ import annotations

import pytest

from kafka_rebalance.errors import Refused
from kafka_rebalance.pipeline.spark_session import collector, in_cluster

ENV = {
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "POD_IP": "10.244.0.7",
    "POD_NAME": "load-model-1",
}


class TestInCluster:
    def test_the_driver_is_this_pod(self) -> None:
        """Executors connect to its address, and Kubernetes deletes them with it."""
        master, settings = in_cluster(ENV)
        assert master == "k8s://https://10.96.0.1:443"
        assert settings == {
            "spark.driver.host": "10.244.0.7",
            "spark.kubernetes.driver.pod.name": "load-model-1",
        }

    def test_ipv6(self) -> None:
        assert in_cluster(ENV | {"KUBERNETES_SERVICE_HOST": "fd00::1"})[0] == "k8s://https://[fd00::1]:443"

    @pytest.mark.parametrize("name", ENV)
    def test_elsewhere_it_is_refused(self, name: str) -> None:
        """With the variable that is missing, and what to write instead."""
        env = {key: value for key, value in ENV.items() if key != name}
        with pytest.raises(Refused, match=rf"{name} is not set: use the chart .* or --master k8s://"):
            in_cluster(env)


class TestCollector:
    def test_one_thread_for_few_cores(self) -> None:
        """With more cores, a pause for one thread would keep all others waiting."""
        assert collector(2, {}) == ("-XX:+UseSerialGC",)
        assert collector(3, {}) == ()

    @pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
    def test_a_collector_of_the_user(self, name: str) -> None:
        """Java does not start if two are chosen."""
        assert collector(1, {name: "-Xss1m -XX:+UseParallelGC"}) == ()
        assert collector(1, {name: "-Xss1m"}) == ("-XX:+UseSerialGC",)
