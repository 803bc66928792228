"""Settings for all tests: Hypothesis without deadlines, since a first call may compile a kernel."""

import os

from hypothesis import HealthCheck, settings

# Kernels as plain Python are a thousand times slower: fewer examples reach the same lines.
PLAIN_PYTHON = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
settings.register_profile(
    "gradrank",
    deadline=None,
    max_examples=8 if PLAIN_PYTHON else 60,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.load_profile("gradrank")
