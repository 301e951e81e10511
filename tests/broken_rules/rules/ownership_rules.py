"""Rules for runs, throttles and records when a cluster gets another owner."""

from tests.broken_rules.broken_rule import BrokenRule

OWNERSHIP_RULES = (
    BrokenRule(
        "evicted-connects-anew",
        "A connection whose engine was ended for another owner while it started asks for the cluster again.",
        "reconcile/supervisor.py",
        "if problem is None and connection.inline is not None and connection.engine is not None:",
        "if problem is None and connection.inline is not None:",
        (
            "tests/unit/reconcile/test_supervisor_evictions.py::TestWhileItStarts::test_while_it_waits_for_the_limits_of_others",
        ),
    ),
    BrokenRule(
        "no-rate-without-permission",
        "A rebalance that may no longer use its connection sets no rate of its own.",
        "reconcile/decide/throttle_claims.py",
        "return rebalance.desired.spec.throttle if rebalance.refusal is None else None",
        "return rebalance.desired.spec.throttle",
        (
            "tests/unit/reconcile/test_supervisor_connections.py::TestPermission::test_an_edit_without_permission_sets_no_rate",
            "tests/unit/reconcile/decide/test_throttle_claims.py::TestClaims::test_one_that_may_not_use_its_connection_sets_no_rate",
        ),
    ),
    BrokenRule(
        "lost-binding",
        "If the record of the owner is lost, it is created again for the owner, not for the namespace of an open run.",
        "reconcile/act/cluster_owners.py",
        "        owner = await self._last_owner(cluster_id, work)\n",
        "        owner = next((Owner(run.namespace) for run in work.open_runs), None)\n",
        (
            "tests/unit/reconcile/test_supervisor_collisions.py::TestAllTopicsCreatedAgainAndTheListenerMoved::test_a_lost_record_gives_it_to_no_permitted_namespace",
        ),
    ),
    BrokenRule(
        "only-to-end",
        "A deleted KafkaConnection does not take over a cluster from another owner.",
        "reconcile/decide/cluster_ownership.py",
        "if holder.named and not claimant.named:",
        "if holder.named and not claimant.named and not work:",
        ("tests/unit/reconcile/decide/test_cluster_ownership.py::test_who_is_refused",),
    ),
    BrokenRule(
        "edited-takes-nothing",
        "A KafkaConnection whose spec was edited does not take a cluster from a younger one.",
        "reconcile/decide/cluster_ownership.py",
        "if older and not claimant.edited and not work and proved:",
        "if older and not work and proved:",
        (
            "tests/unit/reconcile/decide/test_cluster_ownership.py::test_where_both_are_known_to_lead_to_the_cluster",
            "tests/unit/reconcile/test_supervisor_two_connections.py::TestEdited::test_takes_no_cluster_that_it_leads_to",
        ),
    ),
    BrokenRule(
        "ids-prove-nothing",
        "Throttles and cordons of another owner are taken over only if its addresses belong to the cluster.",
        "reconcile/decide/cluster_identity.py",
        "binding.servers <= servers | advertised and",
        "binding.servers and",
        (
            "tests/unit/reconcile/test_supervisor_claimed_before.py::TestThrottles::test_are_not_taken_over",
            "tests/unit/reconcile/test_supervisor_claimed_before.py::TestCordons::test_of_others_stay",
        ),
    ),
    BrokenRule(
        "advertised-proves-nothing",
        "A KafkaConnection takes over nothing at a server that only advertises the addresses of another owner.",
        "reconcile/decide/cluster_identity.py",
        " and servers <= binding.servers | _advertised_before(binding, servers)",
        "",
        ("tests/unit/reconcile/test_supervisor_two_connections.py::TestInlineOwners::test_an_edit_does_not_take_it",),
    ),
    BrokenRule(
        "orphan-holds-nothing",
        "An open run without a resource does not block its cluster for other namespaces.",
        "reconcile/act/cluster_owners.py",
        "                await self._abandon_orphans(work)\n            except",
        "                pass\n            except",
        (
            "tests/unit/reconcile/test_unfinished_work.py::TestOrphanRun::test_while_the_operator_runs",
            "tests/unit/reconcile/test_unfinished_work.py::TestOrphanRun::test_after_a_restart",
        ),
    ),
    BrokenRule(
        "served-when-sent",
        "Nothing is sent for a resource that has left the engine while the round waited for a server.",
        "reconcile/act/submitting.py",
        "served = is_served(rebalance, self._rebalances)",
        "served = True",
        ("tests/unit/reconcile/test_supervisor_left_in_mid_round.py::test_nothing_is_sent_for_it",),
    ),
    BrokenRule(
        "begun-nowhere",
        "A refused run whose topics are all gone changes nothing in a cluster where it may not have started.",
        "reconcile/act/started_runs.py",
        "return Started.UNKNOWN if not there",
        "return Started.HERE if not there",
        (
            "tests/unit/reconcile/test_supervisor_cordons.py::test_of_others",
            "tests/unit/reconcile/test_supervisor_cordons.py::test_of_a_drain_of_the_owner",
        ),
    ),
    BrokenRule(
        "one-resource",
        "A failure that concerns one resource is reported on that resource, and the other resources continue.",
        "reconcile/rounds.py",
        "async with self._lifecycle.problems_of(rebalance, stage):",
        "if stage:",
        ("tests/unit/reconcile/test_engine_bad_resources.py::TestDefects::test_of_a_rebalance",),
    ),
    BrokenRule(
        "one-object",
        "An object that the operator cannot process does not stop the watch or the start of the operator.",
        "reconcile/supervisor.py",
        "        except Exception:\n            about =",
        "        except KeyError:\n            about =",
        ("tests/unit/reconcile/test_supervisor_bad_resources.py::test_an_object_that_cannot_be_taken_in",),
    ),
    BrokenRule(
        "text-of-users",
        "An annotation that cannot be parsed is reported as invalid, and the rest of the resource is processed.",
        "api/overrides.py",
        "from_json(text, allow_inf_nan=False)",
        "__import__('json').loads(text)",
        ("tests/unit/api/test_overrides.py::TestProblems::test_what_no_parser_reads",),
    ),
    BrokenRule(
        "deep-objects",
        "The operator reads objects that are nested too deeply, and lists that contain them.",
        "kube/object_json.py",
        "return json.loads(_cut(data))",
        "return json.loads(data)",
        ("tests/unit/kube/test_object_json.py::test_what_is_beside_it_is_read",),
    ),
)
