"""The reviews of an API server: its tokens with their users and audiences, and who may read what."""

API_SERVER = "https://kubernetes.default.svc"


class ReviewingApiServer:
    """``tokens``: user and audience by token; ``readers``: (user, namespace, name) that may be read.

    ``reviews`` has kind and spec of each review; ``failures`` are raised by the next ones.
    """

    def __init__(self):
        self.tokens = {"token-of-ann": ("ann", API_SERVER), "token-of-bob": ("bob", API_SERVER)}
        self.readers = {("ann", "kafka", "r")}
        self.reviews = []
        self.failures = []

    async def request(self, method, path, body=None):
        assert (method, path.rpartition("/")[2]) == ("POST", body["kind"].lower() + "s")
        self.reviews.append((body["kind"], body["spec"]))
        if self.failures:
            raise self.failures.pop(0)
        return {**body, "status": getattr(self, f"_{body['kind']}")(body["spec"])}

    def _TokenReview(self, spec):  # noqa: N802 - the name of the kind
        user, audience = self.tokens.get(spec["token"], (None, None))
        if audience not in spec.get("audiences", [API_SERVER]):
            return {"user": {}, "error": "[invalid bearer token, token has expired]"}
        about = {"username": user, "uid": f"uid-{user}", "groups": ["system:authenticated"], "extra": {"k": ["v"]}}
        return {"authenticated": True, "user": about, "audiences": [audience]}

    def _SubjectAccessReview(self, spec):  # noqa: N802
        asked = spec["resourceAttributes"]
        return {"allowed": (spec["user"], asked["namespace"], asked["name"]) in self.readers}
