"""The v1alpha1 resources: models, conditions, and the CRDs generated from them."""
