"""How much memory of the container is free, by the files of its cgroup (version 1 or 2).

If a container runs out of memory, the kernel may end all its processes, the operator too (memory.oom.group of cgroup
v2, the default since Kubernetes 1.28). In a container the files are in the root of ``/sys/fs/cgroup``.
"""

_PLACES = (("memory.max", "memory.stat", "anon"), ("memory/memory.limit_in_bytes", "memory/memory.stat", "total_rss"))
"""Version 2 and 1: the file with the limit, that with what is used, and the name of the latter in it."""
_UNLIMITED = 1 << 60


def free_bytes(root: str = "/sys/fs/cgroup") -> int | None:
    """The limit of the container without what its processes use; caches of files do not count. None: no limit."""
    for limit_file, used_file, name in _PLACES:
        try:
            limit = _read(f"{root}/{limit_file}").strip()
            used = dict(line.split() for line in _read(f"{root}/{used_file}").splitlines())
        except (OSError, ValueError):
            continue
        if limit.isdigit() and int(limit) < _UNLIMITED and name in used:
            return max(0, int(limit) - int(used[name]))
    return None


def used_bytes(pid: int) -> int:
    """What this process takes of `free_bytes`: the anonymous memory that it uses. 0 if it has ended."""
    try:
        status = _read(f"/proc/{pid}/status")
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:"))


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()
