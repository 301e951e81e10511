"""The API server: resources, status, events, and the ConfigMaps that hold plans, origins and the ledger."""
