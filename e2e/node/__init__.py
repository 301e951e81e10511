"""A real Kubernetes node on this machine, without a container registry: images, kubelet, network, and the tests on it.

Like the bench it builds on, it must not import the product.
"""
