"""Look for known vulnerabilities of the packages in an environment: python .ci/audit.py PIP_AUDIT SITE_PACKAGES.

pip-audit calls a package clean that its source of data did not answer for. Here that is said, and is no success.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

UNREACHABLE = "audit: the database of known vulnerabilities cannot be reached; nothing was audited\n"
NOT_AUDITED, VULNERABLE = 3, 1


def verdict(report: dict[str, Any]) -> tuple[int, str]:
    """Exit code and text for what pip-audit reports."""
    packages = [item for item in report["dependencies"] if item["name"] != "gradrank"]
    skipped = [item["name"] for item in packages if "skip_reason" in item]
    if len(skipped) == len(packages):
        return NOT_AUDITED, UNREACHABLE
    lines = [
        f"{item['name']} {item['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'none'}\n"
        for item in packages
        for fault in item.get("vulns", ())
    ]
    text = "".join(lines)
    text += f"audit: {len(packages) - len(skipped)} packages, {len(lines)} known vulnerabilities\n"
    if skipped:
        text += f"audit: nothing is known of {', '.join(skipped)}\n"
    return VULNERABLE if lines else 0, text


def main(program: str, folder: str) -> int:
    """Run pip-audit and print the verdict."""
    call = [program, "--path", folder, "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    try:
        code, text = verdict(json.loads(done.stdout))
    except json.JSONDecodeError:  # it ended without a report, which it does when nobody answers
        code, text = NOT_AUDITED, UNREACHABLE
    sys.stdout.write(text)
    return code


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
