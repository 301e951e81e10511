"""Valid settings that are probably mistakes cause a warning. It blocks nothing and ends with its cause."""

from tests.fakes.walked_operator import applied


def warning(operator):
    condition = operator.condition("SpecWarning")
    return condition and (condition["reason"], condition["message"])


class TestExpressions:
    async def test_one_that_matches_nothing(self):
        """As long as the plan that was made with it is carried out, also by the next operator."""
        operator = applied(topics={"include": ["t"], "exclude": ["__*"]})
        await operator.until_flying()
        reason, message = warning(operator)
        assert reason == "PatternMatchesNothing"
        assert message.startswith("spec.topics.exclude[0]: '__*' matches no topic; it is an RE2 expression")
        operator.restart()
        await operator.until_flying()
        await operator.round()
        assert warning(operator) == (reason, message)
        operator.kafka.slow = set()
        operator.kafka.arrive()
        await operator.until("Succeeded")
        assert warning(operator) == (reason, message)

    async def test_mended(self):
        operator = applied(topics={"include": ["t"], "exclude": ["__*"]})
        await operator.until_flying()
        operator.edit(topics={"include": ["t"]})
        await operator.until_true(lambda: warning(operator) is None)


class TestRates:
    async def test_several_warnings(self):
        """From the first round on, beside what the plan says."""
        throttle = {"leaderRate": 1000, "followerRate": "50Mi"}
        operator = applied(throttle=throttle, topics={"include": ["t", "u"]})
        await operator.until_flying()
        reason, message = warning(operator)
        assert reason == "VeryLowRate"
        assert message.endswith("50Mi means 50 MiB/s; spec.topics.include[1]: 'u' matches no topic")
        operator.edit(throttle={**throttle, "leaderRate": "50Mi"})
        await operator.until_true(lambda: warning(operator)[0] == "PatternMatchesNothing")
