"""A real Kubernetes node on this machine without a container registry: images, kubelet, network, and its tests.

Like the bench that it uses, it must not import the product.
"""
