"""kafka-rebalance throttle: what becomes of spec.throttle."""

import pytest
from tests.unit.cli.commands.resource_runs import body, program, spec_of, world

BOTH = {"leaderRate": "10Mi", "followerRate": "20Mi"}


@pytest.mark.parametrize(
    ("before", "options", "after"),
    [
        (None, ("--rate", "50Mi"), {"leaderRate": "50Mi", "followerRate": "50Mi"}),
        (BOTH, ("--rate", "50Mi"), {"leaderRate": "50Mi", "followerRate": "50Mi"}),
        (BOTH, ("--leader-rate", "1Mi"), {**BOTH, "leaderRate": "1Mi"}),
        (BOTH, ("--leader-rate", "1Mi", "--follower-rate", "2Mi"), {"leaderRate": "1Mi", "followerRate": "2Mi"}),
        ({"unlimited": True}, ("--follower-rate", "2Mi"), {"followerRate": "2Mi"}),
        (BOTH, ("--unlimited",), {"unlimited": True}),
        (None, ("--unlimited",), {"unlimited": True}),
        (BOTH, ("--cluster-default",), None),
    ],
)
def test_it_is_set(before, options, after):
    """Unlimited and rates exclude each other; the spec is valid afterwards. A repetition writes nothing."""
    kube = world(body({"throttle": before} if before else {}))
    done = program(kube, "throttle", "r", *options)
    assert (done.code, done.err) == (0, "")
    assert spec_of(kube).get("throttle") == after
    again = program(kube, "throttle", "r", *options)
    assert "is already " in again.out
    assert len(kube.writes) == 1


def test_it_says_what_it_is():
    kube = world(body())
    said = "the throttle of KafkaRebalance kafka/r is set: leaders send at most 1Mi bytes per second\n"
    assert program(kube, "throttle", "r", "--leader-rate", "1Mi").out == said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "give one of --rate, --unlimited and --cluster-default, or some of --leader-rate and --follower-rate"),
        (("--rate", "1Mi", "--unlimited"), "give one of --rate"),
        (("--rate", "1Mi", "--leader-rate", "1Mi"), "give one of --rate"),
        (("--rate", "50MB"), "Invalid value for '--rate': '50MB' is not a quantity like 50Mi or 1048576: write 50M"),
        (("--follower-rate", "0"), "Invalid value for '--follower-rate': "),
    ],
)
def test_wrong_usage(options, says):
    kube = world(body())
    done = program(kube, "throttle", "r", *options)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert kube.writes == []


def test_a_rate_in_another_unit_is_warned_of():
    done = program(world(body()), "throttle", "r", "--rate", "50")
    assert done.code == 0
    assert done.err.startswith("warning: --rate 50: 50 B/s is very low: 1 GiB takes 248d13h.")
