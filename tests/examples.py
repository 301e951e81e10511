"""How many examples a property is tried with: few in `make test`, always the same ones; many new ones in a soak.

The two profiles are Hypothesis' own: `make test` runs with `small`, `make soak-property` with `soak`. A property that
says nothing gets the profile's number. `examples` is for the few that need more of them, or that take long for each.
"""

from hypothesis import HealthCheck, settings

SMALL = "small"
SOAK = "soak"

_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # drawing takes long on a busy machine


def register_profiles() -> None:
    """Make both known to Hypothesis, and `small` the one that holds unless pytest is given --hypothesis-profile."""
    settings.register_profile(SMALL, _COMMON, max_examples=15, derandomize=True)
    settings.register_profile(SOAK, _COMMON, max_examples=300, print_blob=True)
    settings.load_profile(SMALL)


def examples(times: float) -> settings:
    """Settings with the number of examples of the current profile multiplied by ``times``."""
    profile = settings()
    return settings(profile, max_examples=max(1, round(times * profile.max_examples)))


def soaking() -> bool:
    """Whether this is a soak: what `make test` looks up is then computed again."""
    return settings.get_current_profile_name() == SOAK
