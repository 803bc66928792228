"""Settings for all tests: Hypothesis without deadlines, since a first call may compile a kernel; markers of kernels."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Runs under other settings of Numba try fewer examples; see tests/contracts/test_numba_settings.py.
EXAMPLES = int(os.environ.get("GRADRANK_TEST_EXAMPLES", "60"))
settings.register_profile(
    "gradrank", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("gradrank")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background jobs ignore Ctrl-C, and so would the commands that tests interrupt there.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "kernel: kernels on tiny data; also run without Numba and with checked indices")
    config.addinivalue_line("markers", "checked: kernels on small data; also run with checked indices")
