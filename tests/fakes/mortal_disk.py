"""A file system on which the process dies: at a given call that changes something, and at every later one."""

import os


class Died(BaseException):
    """SIGKILL: nothing handles it."""


class MortalDisk:
    """``os``, for one module. ``left``: the calls that are still carried out; None: all.

    ``calls`` are the names of those that were; only ``counted`` ones count. A write that is not carried out has written
    half of its bytes.
    """

    _CHANGES = ("ftruncate", "pwrite", "fsync", "replace", "unlink")

    def __init__(self, counted=("create", "write", *_CHANGES)):
        self.left = None
        self._counted = counted
        self.calls = []

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in self._CHANGES:
            return real

        def call(*arguments):
            self._count(name)
            # A process that dies loses nothing that it has written: only a machine does.
            return None if name == "fsync" else real(*arguments)

        return call

    def open(self, path, flags, mode=0o777):
        if flags & os.O_CREAT:
            self._count("create")
        return os.open(path, flags, mode)

    def write(self, file, data):
        try:
            self._count("write")
        except Died:
            os.write(file, data[: len(data) // 2])
            raise
        return os.write(file, data)

    def _count(self, name):
        if name not in self._counted:
            return
        if self.left is not None:
            if self.left == 0:
                raise Died
            self.left -= 1
        self.calls.append(name)
