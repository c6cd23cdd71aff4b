"""Every benchmark, one after another in a process of its own, a table of bars each, and how many were missed."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from harness import Row, show

HERE = Path(__file__).parent


def names() -> list[str]:
    """The scripts that measure bars: those that hand their rows to the harness."""
    scripts = sorted(path for path in HERE.glob("*.py") if path.stem not in ("all", "harness"))
    return [path.stem for path in scripts if "run(measure" in path.read_text(encoding="utf-8")]


def rows_of(name: str, *, rounds: int | None) -> list[Row] | None:
    """The rows of one script, None if it failed; what it says on stderr is passed on."""
    words = [sys.executable, str(HERE / f"{name}.py"), "--json", *(["--rounds", str(rounds)] if rounds else [])]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return None
    found = json.loads(done.stdout)
    return [Row(**{key: value for key, value in row.items() if key != "reached"}) for row in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*names(), []], help="only these; all when not given")
    parser.add_argument("--rounds", type=int, help="interleaved repeats; each script's own number when not given")
    options = parser.parse_args()
    missed, failed = 0, []
    for name in options.names or names():
        sys.stderr.write(f"{name} ...\n")
        rows = rows_of(name, rounds=options.rounds)
        if rows is None:
            failed.append(name)
            continue
        missed += sum(not row.reached for row in rows)
        sys.stdout.write(f"\n{name}\n{show(rows)}\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{missed} bars missed" + f"; failed: {', '.join(failed)}" * bool(failed) + "\n")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
