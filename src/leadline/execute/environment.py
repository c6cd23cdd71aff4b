"""What a run's description says about where it ran: versions, host, device, code."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from leadline.core.version import VERSION

PACKAGES = ("torch", "numpy", "pydantic", "safetensors")


def describe() -> dict[str, Any]:
    """Everything about this machine and this code that may explain a number later."""
    return {
        "leadline": VERSION,
        "code": commit(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "host": platform.node(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit() -> str | None:
    """The commit of the source tree the package is run from; None for an installed wheel."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    try:
        asked = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()
