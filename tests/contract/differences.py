"""Where the Kafka versions behave differently, and the first release line of the newer behaviour.

Release lines compare as strings: ``family >= CORDONED_LOG_DIRS``. docs/kafka-behaviour.md uses the same names.
"""

CORDONED_LOG_DIRS = "4.3"
"""`cordoned.log.dirs` exists (KIP-1066). Before, any value is accepted, hidden, and has no effect."""
REFUSES_LONG_VALUES = "4.1"
"""An APPEND that makes a config value longer than 32,767 bytes is refused. Before, the active controller resigns."""
COMPLETES_BESIDE_DEAD = "4.3"
"""A reassignment completes when the added replicas are in sync, unless it removes more than it adds. Before, it waits
until the whole target is in sync."""
STUCK_OVERLAP = "4.3"
"""A redirect after which a broker is both added and removed is never completed. Before, it is."""
ELIGIBLE_LEADERS = "4.1"
"""The last replica outside the ISR is kept as an eligible leader, and removing it is refused (KIP-966)."""
FIXED_REPLICATION_FACTOR = "4.1"
"""A request may forbid changes of the replication factor (KIP-860)."""
NO_ZOOKEEPER = "4.0"
"""Clusters are in KRaft mode. Before, they may use ZooKeeper."""
