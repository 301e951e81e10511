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


class TestApproval:
    async def test_a_hash_without_the_policy(self):
        """From the first round on, beside what the plan says."""
        approval = {"planHash": f"sha256:{'0' * 64}"}
        operator = applied(approval=approval, topics={"include": ["t", "u"]})
        await operator.until_flying()
        reason, message = warning(operator)
        assert reason == "PlanHashIgnored"
        assert message.endswith("set policy: Manual; spec.topics.include[1]: 'u' matches no topic")
        operator.edit(approval={**approval, "policy": "Manual"})
        await operator.until_true(lambda: warning(operator)[0] == "PatternMatchesNothing")
