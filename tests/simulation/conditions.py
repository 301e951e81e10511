"""The condition Ready of a resource."""


def ready(body):
    """Its reason, or None."""
    return next((c["reason"] for c in body.get("status", {}).get("conditions", ()) if c["type"] == "Ready"), None)


def message(body):
    """Its message, or an empty text."""
    return next((c["message"] for c in body.get("status", {}).get("conditions", ()) if c["type"] == "Ready"), "")
