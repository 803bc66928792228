"""Settings for all tests: Hypothesis without deadlines, since a first call may compile a kernel."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "gradrank", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("gradrank")
