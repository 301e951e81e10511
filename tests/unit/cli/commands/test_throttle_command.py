"""kafka-rebalance throttle: the changes of spec.throttle."""

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
        (None, ("--log-dir-rate", "5Mi"), {"logDirRate": "5Mi"}),
        (BOTH, ("--log-dir-rate", "5Mi"), {**BOTH, "logDirRate": "5Mi"}),
        ({**BOTH, "logDirRate": "5Mi"}, ("--leader-rate", "1Mi"), {**BOTH, "leaderRate": "1Mi", "logDirRate": "5Mi"}),
        (
            {"logDirRate": "5Mi"},
            ("--rate", "50Mi"),
            {"leaderRate": "50Mi", "followerRate": "50Mi", "logDirRate": "5Mi"},
        ),
        (
            None,
            ("--rate", "50Mi", "--log-dir-rate", "5Mi"),
            {"leaderRate": "50Mi", "followerRate": "50Mi", "logDirRate": "5Mi"},
        ),
        ({"unlimited": True}, ("--log-dir-rate", "5Mi"), {"logDirRate": "5Mi"}),
        ({**BOTH, "logDirRate": "5Mi"}, ("--unlimited",), {"unlimited": True}),
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


def test_it_says_the_rate_between_log_dirs():
    done = program(world(body()), "throttle", "r", "--rate", "1Mi", "--log-dir-rate", "2Mi")
    assert done.out == (
        "the throttle of KafkaRebalance kafka/r is set: leaders send at most 1Mi bytes per second, followers fetch at "
        "most 1Mi bytes per second, each broker copies at most 2Mi bytes per second between its log dirs\n"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "give rates, --unlimited, --cluster-default or --end-override"),
        (("--log-dir-rate", "1Mi", "--unlimited"), "and only one of them"),
        (("--log-dir-rate", "1Mi", "--cluster-default"), "and only one of them"),
        (("--log-dir-rate", "50MB"), "Invalid value for '--log-dir-rate': '50MB' is not a quantity like 50Mi"),
        (("--rate", "1Mi", "--unlimited"), "and only one of them"),
        (("--unlimited", "--cluster-default"), "and only one of them"),
        (("--rate", "1Mi", "--leader-rate", "1Mi"), "give either --rate, or --leader-rate and --follower-rate"),
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
    for option in ("--rate", "--log-dir-rate"):
        done = program(world(body()), "throttle", "r", option, "50")
        assert done.code == 0
        assert done.err.startswith(f"warning: {option} 50: 50 B/s is very low: 1 GiB takes 248d13h.")
