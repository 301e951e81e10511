"""The API server after the chart was installed, as the operator's account sees it: for `check-install`."""

from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.api.crd import definitions
from kafka_rebalance.kube.api_errors import Forbidden, NotFound


class InstalledKube(KubeInMemory):
    """``crds``: those that are installed, by name. The account has all rights and may create no KafkaRebalance."""

    def __init__(self):
        super().__init__()
        self.crds = definitions()

    async def request(self, method, path, body=None, *, content_type="application/json"):
        if path.endswith("/selfsubjectaccessreviews"):
            return {"status": {"allowed": True}}
        if "dryRun=All" in path:
            raise Forbidden("the operator creates no KafkaRebalances")
        if "/customresourcedefinitions/" in path:
            name = path.rpartition("/")[2]
            if name not in self.crds:
                raise NotFound(f"CustomResourceDefinition {name} not found")
            return self.crds[name]
        plurals = [name.partition(".")[0] for name in self.crds]
        return {"resources": [{"name": f"{plural}{sub}"} for plural in plurals for sub in ("", "/status")]}
