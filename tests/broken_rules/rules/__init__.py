"""The rules that ``python -m tests.broken_rules`` breaks, one at a time."""

from tests.broken_rules.broken_rule import BrokenRule
from tests.broken_rules.rules.command_rules import COMMAND_RULES
from tests.broken_rules.rules.drain_rules import DRAIN_RULES
from tests.broken_rules.rules.execution_rules import EXECUTION_RULES
from tests.broken_rules.rules.former_connection_rules import FORMER_CONNECTION_RULES
from tests.broken_rules.rules.given_up_place_rules import GIVEN_UP_PLACE_RULES
from tests.broken_rules.rules.inline_rules import INLINE_RULES
from tests.broken_rules.rules.interface_rules import INTERFACE_RULES
from tests.broken_rules.rules.ledger_rules import LEDGER_RULES
from tests.broken_rules.rules.load_model_rules import LOAD_MODEL_RULES
from tests.broken_rules.rules.log_dir_rules import LOG_DIR_RULES
from tests.broken_rules.rules.old_answer_rules import OLD_ANSWER_RULES
from tests.broken_rules.rules.ownership_rules import OWNERSHIP_RULES
from tests.broken_rules.rules.plan_memory_rules import PLAN_MEMORY_RULES
from tests.broken_rules.rules.planning_rules import PLANNING_RULES
from tests.broken_rules.rules.reconcile_rules import RECONCILE_RULES
from tests.broken_rules.rules.rest_rules import REST_RULES
from tests.broken_rules.rules.review_rules import REVIEW_RULES
from tests.broken_rules.rules.teardown_rules import TEARDOWN_RULES

RULES: tuple[BrokenRule, ...] = (
    *PLANNING_RULES,
    *EXECUTION_RULES,
    *RECONCILE_RULES,
    *LEDGER_RULES,
    *DRAIN_RULES,
    *OLD_ANSWER_RULES,
    *REVIEW_RULES,
    *GIVEN_UP_PLACE_RULES,
    *LOG_DIR_RULES,
    *OWNERSHIP_RULES,
    *FORMER_CONNECTION_RULES,
    *REST_RULES,
    *TEARDOWN_RULES,
    *INTERFACE_RULES,
    *INLINE_RULES,
    *PLAN_MEMORY_RULES,
    *COMMAND_RULES,
    *LOAD_MODEL_RULES,
)
