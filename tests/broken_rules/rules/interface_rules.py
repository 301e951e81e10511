"""Rules at the borders of the operator: the API, Kafka, Kubernetes, credentials and the Lease."""

from tests.broken_rules.broken_rule import BrokenRule

INTERFACE_RULES = (
    BrokenRule(
        "vouched-for",
        "The client of an inline connection runs in a separate process.",
        "app/process.py",
        "observed(isolated.connect(connection, fence, owner.namespace), calls)",
        "observed(connect(connection, fence), calls)",
        ("tests/unit/app/test_process.py::TestClients::test_those_of_untrusted_servers",),
    ),
    BrokenRule(
        "asked-when-sent",
        "A client in a separate process sends an order only if the operator is the leader at that moment.",
        "kafka/isolated/client_process.py",
        "connect(bounded, Fence(self._may_send), cluster_id)",
        "connect(bounded, Fence(lambda: True), cluster_id)",
        (
            "tests/unit/kafka/isolated/test_isolated_admin.py::TestOrders::test_pass_it_again_right_before_they_are_sent",
        ),
    ),
    BrokenRule(
        "same-cluster-in-the-next-process",
        "A client process that replaces another one sends orders only to the cluster that was described first.",
        "kafka/isolated/client_process.py",
        "connect(bounded, Fence(self._may_send), cluster_id)",
        "connect(bounded, Fence(self._may_send))",
        ("tests/unit/kafka/isolated/test_isolated_admin.py::TestOrders::test_of_the_next_process_reach_one_cluster",),
    ),
    BrokenRule(
        "asked-before-an-election",
        "Brokers are asked for the id of their cluster before an election.",
        "kafka/admin.py",
        "self._checked(lambda: self._confluent.elect_preferred(partitions))",
        "self._confluent.elect_preferred(partitions)",
        (
            "tests/unit/kafka/test_admin.py::test_the_brokers_are_asked_first",
            "tests/unit/kafka/test_admin.py::test_nothing_is_sent_where_one_belongs_to_another_cluster",
        ),
    ),
    BrokenRule(
        "asked-if-concerned",
        "The brokers whose configs change are among those that are asked for the id of their cluster.",
        "kafka/admin.py",
        "self._confluent.alter_broker_configs(changes), changes)",
        "self._confluent.alter_broker_configs(changes))",
        ("tests/unit/kafka/test_admin.py::test_the_brokers_are_asked_first",),
    ),
    BrokenRule(
        "planning-hash",
        "A change of spec.replicationFactor makes a new plan.",
        "api/v1alpha1.py",
        '"goals", "replicationFactor", "assignment"',
        '"goals", "assignment"',
        ("tests/unit/api/test_v1alpha1.py::TestPlanningHash::test_another_plan",),
    ),
    BrokenRule(
        "transition-time",
        "lastTransitionTime of a condition changes only with its status.",
        "api/conditions.py",
        "before.last_transition_time if before and unchanged else now.replace(microsecond=0)",
        "now.replace(microsecond=0)",
        ("tests/unit/api/test_conditions.py::TestSetCondition::test_time_stays_while_the_status_does",),
    ),
    BrokenRule(
        "strict-types",
        "A spec is validated as strictly as the schema of the CRD: a string is no number.",
        "api/validation.py",
        "strict=True, by_alias=True",
        "strict=False, by_alias=True",
        ("tests/unit/api/test_validation.py::test_refuses_what_the_api_server_refuses",),
    ),
    BrokenRule(
        "fence",
        "Only the holder of the Lease sends orders to Kafka.",
        "kafka/fencing.py",
        "        self.check()\n        task = asyncio",
        "        task = asyncio",
        ("tests/unit/kafka/test_fencing.py::TestFence::test_orders_are_refused_without_the_lease",),
    ),
    BrokenRule(
        "fence-in-the-thread",
        "The Lease is looked at again when a thread is about to send.",
        "kafka/confluent_values.py",
        "        check()\n",
        "",
        ("tests/unit/kafka/test_confluent.py::TestOrders::test_the_lease_is_lost_before_the_thread_sends",),
    ),
    BrokenRule(
        "redacted-password",
        "No error message contains the password.",
        "kafka/settings.py",
        "_lines(self.password, self.client_key_pem, *of_oauth)",
        "_lines(self.client_key_pem, *of_oauth)",
        ("tests/unit/kafka/test_settings.py::TestSecrets::test_errors",),
    ),
    BrokenRule(
        "redacted-key",
        "No Event and no status has the private key of a client certificate, however a client library quotes it.",
        "kafka/settings.py",
        "_lines(self.password, self.client_key_pem, *of_oauth)",
        "(*_lines(self.password, *of_oauth), self.client_key_pem or '•••')",
        ("tests/unit/reconcile/test_supervisor_credentials.py::test_that_a_client_library_quotes",),
    ),
    BrokenRule(
        "no-secret-on-record",
        "The record of a cluster's owner names Secrets and does not contain them.",
        "reconcile/engines.py",
        "servers_of(settings.bootstrap_servers), on_record, secrets)",
        "servers_of(settings.bootstrap_servers), settings.password or settings.oauth.client_secret, secrets)",
        ("tests/unit/reconcile/test_supervisor_credentials.py::test_of_a_cluster_in_use",),
    ),
    BrokenRule(
        "only-the-secret-on-record",
        "A connection that no resource names any more is used only with the Secrets with which it was made.",
        "reconcile/owner_clients.py",
        "connection.last.secrets if only_to_end(connection) else None",
        "None",
        (
            "tests/unit/reconcile/test_unfinished_work.py::TestAnotherSecret::test_after_the_connection_was_used",
            "tests/unit/reconcile/test_unfinished_work.py::TestAnotherSecret::test_that_was_created_again",
        ),
    ),
    BrokenRule(
        "renewed-by-the-secret-on-record",
        "A running engine that nothing names renews its credentials only with the Secrets on record.",
        "reconcile/owner_clients.py",
        "self._resolved(kafka, owner, unfinished.binding.secrets)",
        "self._resolved(kafka, owner, None)",
        (
            "tests/unit/reconcile/test_supervisor_left_credentials.py::TestNothingNamesIt::test_one_that_was_created_again_is_not",
        ),
    ),
    BrokenRule(
        "renewed-to-end-work",
        "The connection on record is not used while a rebalance goes on in the engine, or its KafkaConnection exists.",
        "reconcile/owner_clients.py",
        "if found or any(_in_use(cluster_id, owner, connection) for connection in self._book):",
        "if found:",
        (
            "tests/unit/reconcile/test_supervisor_left_credentials.py::TestAnotherConnectionIsNamed::test_of_the_same_namespace_that_does_not_connect",
        ),
    ),
    BrokenRule(
        "plaintext-password",
        "A password or token is sent without TLS only if the resource allows it explicitly.",
        "api/connection.py",
        "and sasl.mechanism.sends_secret and",
        "and False and",
        ("tests/unit/api/test_validation.py::test_refuses_what_the_api_server_refuses",),
    ),
    BrokenRule(
        "token-redirect",
        "The credentials of an OAuth client are sent to no other address than its token endpoint.",
        "kafka/oauth_tokens.py",
        '"allow_redirects": False',
        '"allow_redirects": True',
        ("tests/unit/kafka/test_oauth_tokens.py::TestFailures::test_refused",),
    ),
    BrokenRule(
        "missing-right",
        "A missing permission in Kafka is reported as such, and not as an unreachable cluster.",
        "kafka/confluent.py",
        "if error.code() in AUTHORIZATION:",
        "if error.code() in ():",
        ("tests/contract/test_reading.py::TestRefusals::test_rights",),
    ),
    BrokenRule(
        "ordered-writes",
        "A record is not overwritten by an earlier write that the API server carries out late.",
        "kube/ordered_writes.py",
        'replacing = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}',
        "replacing = body",
        (
            "tests/unit/kube/test_ordered_writes.py::test_a_request_without_an_answer",
            "tests/unit/kube/test_ordered_writes.py::test_a_request_of_the_former_leader",
        ),
    ),
    BrokenRule(
        "index-last",
        "The index of a stored record is written after all its shards, so that a crash leaves the old content.",
        "kube/blobs.py",
        """\
        for shard, piece in zip(shards, pieces, strict=bool(shards)):
            await self._write_shard(shard, piece, {**labels, KIND_LABEL: f"{self._kind}-shard", _BLOB_LABEL: name})
        index = _index(name, labels, content, shards, attributes)
        if not shards:
            index["binaryData"] = {_PAYLOAD: _encode(payload)}
        await self._put(index, expected)
""",
        """\
        index = _index(name, labels, content, shards, attributes)
        if not shards:
            index["binaryData"] = {_PAYLOAD: _encode(payload)}
        await self._put(index, expected)
        for shard, piece in zip(shards, pieces, strict=bool(shards)):
            await self._write_shard(shard, piece, {**labels, KIND_LABEL: f"{self._kind}-shard", _BLOB_LABEL: name})
""",
        ("tests/kube/test_stores.py::TestKilledBetweenWrites::test_saving_a_plan",),
    ),
    BrokenRule(
        "content-hash",
        "A stored record whose content is not what was written is never used.",
        "kube/blobs.py",
        "if hashlib.sha256(payload).hexdigest() != expected:",
        "if not payload:",
        ("tests/unit/kube/test_blobs.py::test_content_that_was_not_written_is_never_read",),
    ),
    BrokenRule(
        "lease-margin",
        "The leader stops acting before its Lease ends.",
        "kube/lease.py",
        "self._valid_until = sent + self._duration - self._margin",
        "self._valid_until = sent + self._duration",
        ("tests/unit/kube/test_lease.py::TestHolding::test_counts_from_before_the_renewal_was_sent",),
    ),
    BrokenRule(
        "released-lease",
        "An operator that stops gives up the Lease, so that the standby leads at once.",
        "app/process.py",
        "        await parts.lease.release()\n",
        "",
        ("e2e/test_two_operators.py::TestTwo::test_one_acts_and_hands_over",),
    ),
    BrokenRule(
        "override-shown-alike",
        "A changed override takes effect even if its displayed rate is the same as before.",
        "api/v1alpha1.py",
        "if (found.spec, found.in_force, found.problems) == (self.spec, self.overrides, self.override_problems):",
        "if (found.in_force, found.problems) == (self.overrides, self.override_problems):",
        ("tests/unit/api/test_overrides.py::TestCluster::test_another_value_that_is_shown_alike",),
    ),
    BrokenRule(
        "escaped-markdown",
        "Names and messages from Kafka are text in Markdown reports.",
        "report/pages.py",
        ".translate(_MARKUP)",
        "",
        (
            "tests/unit/report/test_pages.py::TestMarkdown::test_names_and_messages_are_text",
            "tests/unit/report/test_pages.py::TestMarkdown::test_markup_is_escaped_wherever_text_of_a_cluster_is_shown",
        ),
    ),
)
