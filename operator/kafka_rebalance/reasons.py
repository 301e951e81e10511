"""Every reason that appears in a condition, an error or a skipped partition, with the sentence that it reports."""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Why a condition has its status, an error was raised, or a partition is where it is.

    As the reason of Ready it is the STATE column. Users match on these values: a value is never changed.
    """

    sentence: str
    """What the reason reports: "Reports that " and this."""

    def __new__(cls, value: str, sentence: str = "") -> Self:
        """A string with a sentence."""
        reason = str.__new__(cls, value)
        reason._value_, reason.sentence = value, sentence
        return reason

    # The state of a resource (the reason of Ready) and of its conditions

    QUEUED = "Queued", "the rebalance waits for another one of the same cluster"
    PLANNING = "Planning", "the cluster is being read and a plan made"
    PLANNED = "Planned", "the plan is stored"
    REBALANCING = "Rebalancing", "steps are being submitted or are in flight"
    SUSPENDED = "Suspended", "spec.suspend, spec.execution.suspend or an override holds new steps back"
    OUTSIDE_WINDOW = "OutsideWindow", "none of spec.execution.windows is open; the message says when the next one opens"
    AWAITING_APPROVAL = "AwaitingApproval", "spec.approval.policy is Manual and planHash is not that of the stored plan"
    APPROVED = "Approved", "spec.approval.planHash is the hash of the stored plan"
    YIELDING = "Yielding", "this rebalance stops at a rest point for one of higher priority with the same partitions"
    FROZEN = "Frozen", "a KafkaReassignmentThrottle with freeze holds new steps back"
    CLUSTER_UNHEALTHY = "ClusterUnhealthy", "the health gate holds new steps back"
    SUCCEEDED = "Succeeded", "every partition of the plan is at its target"
    NOTHING_TO_DO = "NothingToDo", "the cluster already was as asked for"
    STALLED = "Stalled", "reassignments in flight made no progress within spec.execution.stallTimeout"
    THROTTLE_TOO_LOW = "ThrottleTooLow", "clients produce faster than the throttle allows to copy: it cannot finish"
    DRIFTED = "Drifted", "others changed more of the plan than spec.approval.driftBudget: a new plan is being made"
    ROLLBACK_TOO_LARGE = "RollbackTooLarge", "the rollback exceeds spec.rollback.maxData and waits for a decision"
    TAKEN_OVER = (
        "TakenOver",
        "another resource covers the same partitions and continues from here; nothing is moved back",
    )
    UNDOING = "Undoing", "a run that had succeeded is being moved back to where it began"
    UNDONE = "Undone", "a run that had succeeded has been moved back to where it began"
    ROLLING_BACK = "RollingBack", "partitions are being moved back to where they were before the run"
    REVERTING = "Reverting", "only reassignments in flight are being cancelled"
    ROLLED_BACK = "RolledBack", "every partition is back where it was before the run"
    ROLLED_BACK_PARTIALLY = "RolledBackPartially", "some partitions could not be moved back; the message names them"
    CANCEL_IMPOSSIBLE = "CancelImpossible", "Kafka would refuse the cancel: all originals and new replicas are offline"
    CANCEL_BELOW_MIN_INSYNC_REPLICAS = "CancelBelowMinInsyncReplicas", "a cancel would leave too few in-sync replicas"
    SUPERSEDED = "Superseded", "the planning part of the spec changed and the plan in flight is being replaced"
    APPLIED = "Applied", "every broker that the rebalance uses accepted the rate"
    PENDING = "Pending", "something has not been read back yet"
    UNLIMITED = "Unlimited", "the spec asks for full speed, so no throttle is set"
    RESTORED = "Restored", "the throttle was removed and what was there before is back"
    DRAINED = "Drained", "the decommissioned brokers hold no replica"
    NOT_DRAINED = "NotDrained", "a decommissioned broker still holds replicas"
    DRAIN_UNPROVED = (
        "DrainUnproved",
        "the decommissioned brokers may hold replicas that the operator does not see",
    )
    PERMISSIONS_MISSING = "PermissionsMissing", "Kafka does not permit what the operator needs; the message names it"
    CONFLICTED = "Conflicted", "an older resource of the same kind and cluster is in force instead"
    NOTHING_TO_THROTTLE = "NothingToThrottle", "nothing is being reassigned, so no broker has a rate of ours"
    REPLICATION_THROTTLE_LOWER = "ReplicationThrottleLower", "a rate exceeds the replication throttle of a broker"
    THROTTLE_NOT_ALLOWED = "ThrottleNotAllowed", "brokers do not let the operator set a throttle, so no copy starts"
    CONTESTED = "Contested", "the throttle is reverted repeatedly by another actor; the message names likely ones"
    THROTTLE_LEDGER_DAMAGED = "ThrottleLedgerDamaged", "the record of what to restore is unreadable; nothing is guessed"
    RESTORING = "Restoring", "the resource is being deleted and its changes in Kafka are being restored"
    PATTERN_MATCHES_NOTHING = "PatternMatchesNothing", "an expression in spec.topics matches no topic of the cluster"
    FEW_BROKERS_IN_RACK = "FewBrokersInRack", "brokers end with much more, because others of their rack leave"
    BROKER_LEAVES = "BrokerLeaves", "a broker gets no replicas, because another rebalance empties it or has done so"
    VERY_LOW_RATE = "VeryLowRate", "a rate is so low that it is probably meant in another unit"
    OVERRIDDEN = "Overridden", "annotations override settings of the spec for a time"
    OVERRIDE_INVALID = (
        "OverrideInvalid",
        "the annotation of an override cannot be read, and has no effect",
    )
    VERSION_RECORDED = "VersionRecorded", "the behaviour of this Kafka version is on record"
    VERSION_NOT_RECORDED = "VersionNotRecorded", "the behaviour of this Kafka version is not on record"
    ZOOKEEPER_MODE = (
        "ZooKeeperMode",
        "the cluster reports no version, as with ZooKeeper, and only clusters in KRaft mode are on record",
    )
    KAFKA_TOO_OLD = "KafkaTooOld", "the brokers lack a request that the operator needs"
    INVALID_SPEC = "InvalidSpec", "the spec cannot be read; the message names the field"
    KAFKA_UNREACHABLE = "KafkaUnreachable", "no broker answered; retried"
    KAFKA_CLIENT_ENDED = (
        "KafkaClientEnded",
        "the process of an inline connection's client ended: a server crashes it, or fills its memory; retried",
    )
    KAFKA_AUTHENTICATION_FAILED = "KafkaAuthenticationFailed", "the brokers refused the credentials"
    KAFKA_AUTHORIZATION_FAILED = "KafkaAuthorizationFailed", "the brokers accepted the credentials but refused the call"
    TOKEN_UNAVAILABLE = "TokenUnavailable", "the OAuth server did not answer the request for a token; retried"
    SECRET_NOT_FOUND = "SecretNotFound", "a Secret that the spec names, or a key in it, is not there"
    INSUFFICIENT_BROKERS = "InsufficientBrokers", "fewer brokers may be used than a partition has replicas"
    CAPACITY_LIMIT_EXCEEDED = "CapacityLimitExceeded", "a broker would exceed a capacityLimit of goals.load"
    INSUFFICIENT_DISK = "InsufficientDisk", "the disks of a broker have no room for the plan, at its end or on the way"
    UNKNOWN_BROKER = "UnknownBroker", "the spec names a broker that the cluster does not have"
    UNKNOWN_LOG_DIR = "UnknownLogDir", "the spec names a log dir that its broker does not have, or not online"
    LAST_LOG_DIR = "LastLogDir", "no log dir of the broker would be left to hold its replicas"
    OFFLINE_PARTITIONS = "OfflinePartitions", "partitions have no leader, and the spec asks to plan nothing meanwhile"
    ASSIGNMENT_INVALID = "AssignmentInvalid", "the lists of strategy Assignment cannot be read; the message says where"
    SIZES_UNKNOWN = "SizesUnknown", "no broker reports the sizes of partitions, and the spec limits bytes; retried"
    ORIGINAL_REPLICAS_DIFFER = "OriginalReplicasDiffer", "a partition has other replicas than its original_replicas"
    API_SERVER_UNREACHABLE = "ApiServerUnreachable", "the Kubernetes API server did not answer; retried"
    INTERNAL_ERROR = "InternalError", "the operator itself failed; it retries, and its log has the details"

    # What is refused when a rebalance is planned
    DUPLICATE_BROKER = "DuplicateBroker", "a broker id is given twice"
    DUPLICATE_PARTITION = "DuplicatePartition", "a partition is given twice"
    DUPLICATE_REPLICA = "DuplicateReplica", "a replica list names a broker twice"
    INVALID_BROKER = "InvalidBroker", "a broker id is negative or too large"
    NO_REPLICAS = "NoReplicas", "a partition has an empty replica list"
    INELIGIBLE_BROKER = "IneligibleBroker", "a replica list names a broker that may not hold replicas"
    UNKNOWN_PARTITION = "UnknownPartition", "a partition is named that the cluster does not have"
    UNKNOWN_TOPIC = "UnknownTopic", "a topic is named that the cluster does not have"
    PINNED_PARTITION = "PinnedPartition", "a partition is to be moved whose topic is pinned"
    REPLICATION_FACTOR_CHANGE = "ReplicationFactorChange", "a list has another length than the replication factor"
    MIXED_FACTORS = "MixedFactors", "lists of different lengths are given where one replication factor is required"
    RACK_UNKNOWN = "RackUnknown", "some brokers have a rack and others none, which strategy Generate does not support"
    GOALS_NOT_COMBINED = "GoalsNotCombined", "goals are set that cannot be combined"
    PLANNING_FAILED = "PlanningFailed", "the planner's process died or took too long; retried"
    TOO_MANY_PLANS = "TooManyPlans", "the plans of other rebalances of the namespace fill the memory that it may use"
    NOT_EXPLAINED = "NotExplained", "`explain` does not support the request"
    NO_WAY_FORWARD = "NoWayForward", "no sequence of steps leads from the current to the target replicas"

    # Why a plan is empty, or leaves a partition where it is
    GAIN_TOO_SMALL = "GainTooSmall", "the plan would gain less than goals.minimumGain, so nothing is moved"
    BUDGET_REACHED = "BudgetReached", "the movement budget allows no further move"
    NOTHING_SELECTED = "NothingSelected", "spec.topics selects no topic of the cluster"
    PINNED = "Pinned", "the partition belongs to a pinned topic and stays on a broker to decommission"
    NOT_MOVED = "NotMoved", "the strategy does not move the partition off a broker to decommission"

    # The state of one partition
    NO_LEADER = "NoLeader", "the partition has no leader"
    FOREIGN_REASSIGNMENT = "ForeignReassignment", "another tool is reassigning the partition; it is left to that tool"
    WEDGED_REASSIGNMENT = "WedgedReassignment", "a reassignment adds and removes the same broker; `doctor` cancels it"
    TOPIC_DELETED = "TopicDeleted", "the partition no longer exists"
    TOPIC_RECREATED = "TopicRecreated", "the topic was deleted and created again since the plan was made"
    METADATA_MISSING = "MetadataMissing", "no broker returned the partition's metadata or topic configs; retried"
    TOPIC_FORBIDDEN = "TopicForbidden", "Kafka does not allow the operator to read the topic or its configs; retried"
    METADATA_STALE = "MetadataStale", "metadata does not show an earlier call yet; read again"
    ORDER_REFUSED = "OrderRefused", "Kafka refused the last order for the partition; it is sent again"
    CANCELLING = "Cancelling", "the reassignment in flight is being cancelled"
    TARGET_BROKER_UNAVAILABLE = "TargetBrokerUnavailable", "a broker which receives a copy is fenced or not registered"
    REPLICA_NOT_IN_SYNC = "ReplicaNotInSync", "a replica that stays is out of sync, so Kafka does not complete the step"
    COPY_NOT_IN_SYNC = "CopyNotInSync", "a new replica is not in the ISR yet, so no in-sync replica is removed"
    PREFERRED_LEADER_NOT_IN_SYNC = "PreferredLeaderNotInSync", "the next preferred leader must be in sync to lead"
    MIN_INSYNC_REPLICAS = "MinInsyncReplicas", "no replica can be removed without falling below min.insync.replicas"
    LEFT_IN_PLACE = "LeftInPlace", "deletionPolicy Revert leaves a completed step in place"
    ORIGINAL_BROKER_AWAY = "OriginalBrokerAway", "a broker of the original replicas is not live but may be restarting"
    PAUSED = "Paused", "no new step is started now"
    THROTTLE_LIST_FULL = "ThrottleListFull", "Kafka limits the length of a topic's throttled lists, and one is full"
    DISK_FULL = "DiskFull", "a broker has no disk space for the copy now"
    CAPACITY_LIMIT_REACHED = "CapacityLimitReached", "the partition would bring a broker above a capacityLimit now"
    LOG_DIRS_UNKNOWN = "LogDirsUnknown", "a broker does not describe its log dirs; retried"
    LOG_DIR_OFFLINE = "LogDirOffline", "the replica is in no log dir of its broker that is online"
    ORIGINAL_BROKER_GONE = "OriginalBrokerGone", "the broker of an original replica is not live: it cannot be restored"
    PREFERRED_LEADER_GONE = "PreferredLeaderGone", "the replicas are restored but their preferred leader is not live"
    BELOW_MIN_INSYNC_REPLICAS = "BelowMinInsyncReplicas", "there would be fewer replicas than min.insync.replicas"

    # The health gate
    BELOW_MIN_ISR = "BelowMinIsr", "partitions outside the rebalance are below min.insync.replicas"
    UNDER_REPLICATED = "UnderReplicated", "more foreign partitions are under-replicated than maxUnhealthy allows"
    MEMBERSHIP_CHANGED = "MembershipChanged", "a broker joined or left a moment ago"

    # Kafka clients and their settings
    KAFKA_SETTINGS_INVALID = "KafkaSettingsInvalid", "the connection settings cannot be used"
    CLUSTER_ID_COLLISION = (
        "ClusterIdCollision",
        "a server reports the id of a cluster in which there is work, but has other brokers or topics",
    )
    CLUSTER_OWNED_ELSEWHERE = (
        "ClusterOwnedElsewhere",
        "the Kafka cluster belongs to a KafkaConnection, or is in use by the connections of another namespace",
    )
    CLUSTER_CHANGED = (
        "ClusterChanged",
        "the KafkaConnection leads to another cluster than before, in which there is still work",
    )
    CONNECTED = "Connected", "the brokers answer, and the cluster belongs to this KafkaConnection"
    CONNECTION_NOT_FOUND = "ConnectionNotFound", "the KafkaConnection that the spec names does not exist"
    CONNECTION_NOT_PERMITTED = (
        "ConnectionNotPermitted",
        "the KafkaConnection that the spec names does not permit this namespace",
    )
    INLINE_CONNECTION_REFUSED = (
        "InlineConnectionRefused",
        "only a KafkaConnection is accepted: --require-connections, servers that claim too much, or too many clusters",
    )
    SECRET_FORBIDDEN = "SecretForbidden", "the operator may not read a Secret that the spec names"
    SECRET_INVALID = "SecretInvalid", "a Secret holds a value that cannot be used"
    CONFIG_MAP_NOT_FOUND = "ConfigMapNotFound", "a ConfigMap that the spec names, or a key in it, is missing"
    CONFIG_MAP_FORBIDDEN = "ConfigMapForbidden", "the operator may not read a ConfigMap that the spec names"
    NOT_LEADING = "NotLeading", "this operator does not hold the lease, so it sends nothing to Kafka"

    # Stored records
    STORED_PLAN_MISSING = "StoredPlanMissing", "the stored plan of an open run is missing"
    STORED_STATE_CORRUPT = "StoredStateCorrupt", "a stored record cannot be read"
    THROTTLE_LEDGER_MISSING = "ThrottleLedgerMissing", "the throttle ledger is missing; our throttles may be in place"
    ORIGINS_EXPIRED = "OriginsExpired", "the origins of the run are no longer stored"
    NOTHING_TO_UNDO = "NothingToUndo", "the run sent no step, so there is nothing to undo"
    RUN_NOT_FOUND = "RunNotFound", "no run of the rebalance is stored"
    RECORDS_LOCKED = "RecordsLocked", "another process uses the directory with the records of `run`"
    RECORDS_INVALID = "RecordsInvalid", "the directory with the records of `run` has a file that is damaged or foreign"
    RUN_DOES_NOT_ANSWER = "RunDoesNotAnswer", "the `run` that uses the directory does not take a change"
    RECORDS_NOT_WRITTEN = "RecordsNotWritten", "a file of the records of `run` cannot be read or written; retried"

    # Kubernetes API
    CONFLICT = "Conflict", "the object changed since it was read; retried"
    NOT_FOUND = "NotFound", "the object does not exist"
    API_SERVER_BUSY = "ApiServerBusy", "the API server asked to retry later"
    API_SERVER_FORBIDDEN = "ApiServerForbidden", "the API server denied the request for lack of rights"
    API_SERVER_UNAUTHORIZED = "ApiServerUnauthorized", "the API server did not accept the credentials"
    API_SERVER_REFUSED = "ApiServerRefused", "the API server rejected the request as invalid"
    NO_KUBERNETES_ACCESS = "NoKubernetesAccess", "no usable kubeconfig or service account was found"
    NAMESPACE_FORBIDDEN = "NamespaceForbidden", "the operator may not read a namespace"
    LEADERSHIP_LOST = "LeadershipLost", "this operator lost the lease"
    WATCH_ENDED = "WatchEnded", "the watch of the resources ended unexpectedly"
    HEALTH_PORT_UNAVAILABLE = "HealthPortUnavailable", "the port for the probes is not available"
    REPORT_PORT_UNAVAILABLE = "ReportPortUnavailable", "the port for the report is not available"
    REPORT_BUSY = "ReportBusy", "too many reports are being made at once"
    METRICS_PORT_UNAVAILABLE = "MetricsPortUnavailable", "the port for the metrics is not available"

    # Commands
    NO_PLAN = "NoPlan", "the rebalance has no plan yet"
    NOTHING_TO_APPROVE = "NothingToApprove", "no plan of the rebalance waits for approval"
    PLAN_CHANGED = "PlanChanged", "the operator has made another plan than the one to approve"
    ALREADY_ASKED = "AlreadyAsked", "the undo was already requested"
    ALREADY_UNDONE = "AlreadyUndone", "the run was already undone"
    ALREADY_THERE = "AlreadyThere", "an object of this name exists with other content"
    CONFIG_MAP_TAKEN = "ConfigMapTaken", "the ConfigMap for the replica lists belongs to something else"
    ASSIGNMENT_TOO_LARGE = "AssignmentTooLarge", "the replica lists exceed the size of a ConfigMap"
    DELETING = "Deleting", "the resource is being deleted"
    RUNNING = "Running", "the run has not finished"
    NOT_SUCCEEDED = "NotSucceeded", "the run has not succeeded"
    NOT_CONFIRMED = "NotConfirmed", "the user did not confirm"
    INTERRUPTED = "Interrupted", "the command was interrupted; run it again to continue"
    LEFTOVER_THROTTLE = "LeftoverThrottle", "a replication throttle is set that no reassignment needs any more"
    OPERATOR_RUNS = "OperatorRuns", "an operator is still running"
    UNDER_WAY = "UnderWay", "rebalances are in progress"
    REASSIGNMENT_IN_PROGRESS = "ReassignmentInProgress", "a partition is being reassigned"
    OTHER_CLUSTER = "OtherCluster", "the brokers belong to another cluster than the run"

    # Pipeline
    EXTRA_MISSING = "ExtraMissing", "a library that the command needs is not installed"
    NOT_IN_POD = "NotInPod", "Spark can start executor Pods only from within a Pod"
    CONSUMPTION_UNKNOWN = "ConsumptionUnknown", "Kafka does not say what a group of consumers has read"
    METRICS_UNAVAILABLE = "MetricsUnavailable", "Prometheus does not answer, or not with the metrics of the brokers"
    LAKE_UNUSABLE = "LakeUnusable", "the lake cannot be read or written"
    NO_LAKE = "NoLake", "the operator was started without a lake for samples"
    SAMPLED = "Sampled", "the last sample of the cluster was stored"
    DAILY_LIMIT = "DailyLimit", "the namespace has written to the lake what it may write in a day"
    MANIFEST_INVALID = "ManifestInvalid", "a manifest in the lake cannot be read"
    SCHEMA_UNKNOWN = "SchemaUnknown", "samples have an unknown schema version"
    NO_SAMPLES = "NoSamples", "the lake has no samples of the cluster"
    CLUSTER_FILE_INVALID = "ClusterFileInvalid", "a cluster file of a fleet cannot be read"
    PLANS_MISSING = "PlansMissing", "some clusters of a fleet could not be planned"
    NO_HISTORY = "NoHistory", "the lake has too few ended runs of the cluster to learn durations from"
    DURATION_MODEL_INVALID = "DurationModelInvalid", "a duration model file cannot be read"
    LOAD_MODEL_INVALID = "LoadModelInvalid", "a load model file cannot be read"
    LOAD_MODEL_STALE = "LoadModelStale", "the load model is too old, from the future, or of another cluster"
    RATES_UNKNOWN = "RatesUnknown", "goals.load needs rates that the load model does not have"
