"""A wall clock that runs backwards: no number, no order and no state of a run depends on it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faults.killing import SMALL, content, only

from leadline.cli import main
from leadline.store.reader import read
from leadline.train import checkpoint

STEPS = 120
BACKWARDS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

/* every look at the calendar finds it a hundred seconds earlier */
static time_t lost(void) { static time_t n; return n += 100; }

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, at);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) at->tv_sec -= lost();
    return code;
}

time_t time(time_t *to) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (to) *to = at.tv_sec;
    return at.tv_sec;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


@pytest.fixture(scope="module")
def backwards(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose processes see a calendar that runs backwards."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler, to put a clock that runs backwards before that of the system")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(BACKWARDS)
    library = folder / "clock.so"
    words = [compiler, "-shared", "-fPIC", "-o", str(library), str(folder / "clock.c"), "-ldl"]
    subprocess.run(words, check=True, capture_output=True)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    look = "import time; times = [time.time() for _ in range(9)]; print(times == sorted(times, reverse=True))"
    seen = subprocess.run([sys.executable, "-c", look], env=environment, capture_output=True, text=True, check=True)
    assert seen.stdout == "True\n"
    return environment


def words(out: Path, steps: int) -> list[str]:
    said = ("train", "resnet-8", *SMALL, "--lr", 0.05, "--steps", steps, "--out", out, "--checkpoint-seconds", 0.02)
    return [str(word) for word in said]


def test_a_run_under_a_clock_that_runs_backwards(tmp_path: Path, backwards: dict[str, str]) -> None:
    assert main(words(tmp_path / "whole", STEPS)) == 0
    command, root = [sys.executable, "-m", "leadline", *words(tmp_path / "back", STEPS)], tmp_path / "back"
    with subprocess.Popen(command, env=backwards, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        while killed.poll() is None and not (root.exists() and list(only(root).checkpoint.glob("step-*"))):
            time.sleep(0.005)
        killed.send_signal(signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    # the second life's start is seen by nobody as later than the first one's, nor its checkpoints as newer
    newest = max(only(root).checkpoint.glob("step-*"))
    os.utime(newest, (0, 0))
    ended = subprocess.run(command, env=backwards, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert f"goes on from step {int(newest.name.removeprefix('step-'))} of {STEPS}" in ended.stderr
    assert content(only(root)) == content(only(tmp_path / "whole"))
    assert read(only(root).path).state == "done"
    print("\nclock going backwards: 1 killed and resumed run, 0 losses")


def test_the_newest_checkpoint_is_the_furthest_whatever_the_dates_say(tmp_path: Path) -> None:
    assert main(words(tmp_path, 16)) == 0
    folder = only(tmp_path)
    for number, path in enumerate(sorted(folder.checkpoint.iterdir())):
        for each in (*path.iterdir(), path):
            os.utime(each, (10_000 - number, 10_000 - number))
    for path in (folder.run_json, folder.readings, folder.done_json):
        os.utime(path, (2**33, 2**33))
    assert checkpoint.newest(folder.checkpoint) == (folder.checkpoint / "step-000000016", [])
    record = json.loads(folder.run_json.read_bytes())
    record["environment"]["started"] = "2999-01-01T00:00:00+00:00"
    folder.run_json.write_text(json.dumps(record))
    stamps = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
    assert main(words(tmp_path, 16)) == 0
    assert stamps == {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
