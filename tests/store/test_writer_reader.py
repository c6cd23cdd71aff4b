"""What is written is read back, while it grows, after a crash, and when it is damaged."""

import json
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.core.errors import UnreadableError, UsageError
from leadline.store.layout import RunFolder, read_json, run_folders
from leadline.store.reader import Follower, read
from leadline.store.writer import RunWriter, line

numbers = st.floats() | st.lists(st.floats(), max_size=5)
readings = st.lists(st.tuples(st.integers(0, 2**40), st.text(), st.text(), numbers), max_size=20)


@settings(max_examples=60)
@given(readings)
def test_readings_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str, str, object]]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    with RunWriter(folder) as writer:
        for row in rows:
            writer.append(*row)  # type: ignore[arg-type]
    table = Follower(RunFolder(folder)).poll()
    flat = [
        (step, probe, name, block, number)
        for step, probe, name, value in rows
        for block, number in ([(-1, value)] if isinstance(value, float) else enumerate(value))  # type: ignore[arg-type]
    ]
    assert table.height == len(flat)
    for found, wrote in zip(table.rows(), flat, strict=True):
        assert tuple(found.values())[:4] == wrote[:4] and found["note"] == ""
        assert found["value"] == wrote[4] or (math.isnan(found["value"]) and math.isnan(wrote[4]))


def fill(folder: Path, steps: range, *, at: int = 0) -> int:
    with RunWriter(folder, resume_at=at) as writer:
        writer.describe({"config": {}})
        for step in steps:
            writer.append(step, "loss", "loss", step / 7)
            writer.append(step, "ratio", "ratio", [step, 0.5, float("inf")])
        return writer.position


def test_following_takes_only_what_is_new(tmp_path: Path) -> None:
    follower = Follower(RunFolder(tmp_path / "run"))
    assert follower.poll().height == 0
    end = fill(tmp_path / "run", range(3))
    assert follower.poll().height == 12
    assert follower.offset == end
    fill(tmp_path / "run", range(3, 5), at=end)
    assert follower.poll()["step"].tolist() == [3] * 4 + [4] * 4


def test_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    fill(tmp_path, range(2))
    whole = line(2, "loss", "loss", 0.25)
    follower = Follower(RunFolder(tmp_path))
    with RunFolder(tmp_path).readings.open("ab") as handle:
        handle.write(whole[:20])
        handle.flush()
        assert follower.poll().height == 8
        handle.write(whole[20:])
        handle.flush()
        assert follower.poll()["value"].tolist() == [0.25]


def test_a_torn_line_of_a_dead_run_is_dropped_and_reported(tmp_path: Path) -> None:
    end = fill(tmp_path, range(2))
    os.truncate(RunFolder(tmp_path).readings, end - 5)
    run = read(tmp_path)
    assert run.state == "dead"
    assert run.readings.height == 5
    assert "torn last line" in run.notes[0]


def test_resuming_at_any_byte_gives_the_same_file(tmp_path: Path) -> None:
    fill(tmp_path / "whole", range(6))
    whole = RunFolder(tmp_path / "whole").readings.read_bytes()
    at = len(b"".join(whole.splitlines(keepends=True)[:4]))
    for cut in range(at, len(whole) + 1, 7):
        folder = tmp_path / f"cut{cut}"
        fill(folder, range(2))
        RunFolder(folder).readings.write_bytes(whole[:cut])
        fill(folder, range(2, 6), at=at)
        assert RunFolder(folder).readings.read_bytes() == whole


def test_replaying_never_shortens_what_was_recorded(tmp_path: Path) -> None:
    end = fill(tmp_path, range(6))
    with RunWriter(tmp_path) as writer:
        writer.append(0, "loss", "loss", 0.0)
        assert RunFolder(tmp_path).readings.stat().st_size == end


def test_a_checkpoint_ahead_of_its_readings_is_refused(tmp_path: Path) -> None:
    end = fill(tmp_path, range(2))
    with pytest.raises(UnreadableError, match=f"has {end} bytes"):
        RunWriter(tmp_path, resume_at=end + 1)


@pytest.mark.parametrize(
    "junk",
    [
        b"\x00\xff\xfe",
        b"{}",
        b"[1,2]",
        b'{"step":1}',
        b'{"step":1,"probe":"","name":"","value":1,"notes":{"x":"y"}}',
        b"[" * 100_000,
        b'{"step":"1"}',
    ],
)
def test_damaged_lines_are_left_out_with_a_note(tmp_path: Path, junk: bytes) -> None:
    fill(tmp_path, range(2))
    path = RunFolder(tmp_path).readings
    path.write_bytes(junk + b"\n" + path.read_bytes())
    run = read(tmp_path)
    assert run.readings.height == 8
    assert "1 damaged line" in run.notes[0]


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    folder = tmp_path_factory.mktemp("run")
    fill(folder, range(1))
    path = RunFolder(folder).readings
    path.write_bytes(path.read_bytes() + junk + b"\n" + path.read_bytes())
    assert read(folder).readings.height >= 4


@pytest.mark.parametrize(("whole", "torn"), [(b"0.5,0.75]", b"0.5\n0.75]"), (b'"loss",', b'"lo\nss",')])
def test_two_damaged_lines_do_not_make_one_reading(tmp_path: Path, whole: bytes, torn: bytes) -> None:
    reading = line(1, "loss", "loss", [0.5, 0.75])
    assert whole in reading
    RunFolder(tmp_path).readings.write_bytes(line(0, "a", "b", 1.0) + reading.replace(whole, torn, 1))
    follower = Follower(RunFolder(tmp_path))
    assert [found["step"] for found in follower.lines()] == [0]
    assert follower.notes[0].startswith("2 damaged lines")


def test_a_line_longer_than_any_reading_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.store.reader.CHUNK", 1 << 10)
    monkeypatch.setattr("leadline.store.reader.LONGEST_LINE", 1 << 12)
    fill(tmp_path, range(1))
    path = RunFolder(tmp_path).readings
    good = path.read_bytes()
    path.write_bytes(good + b"x" * 10_000 + b"\n" + line(1, "p", "q", [0.5] * 500) + good)
    run = read(tmp_path)
    assert run.readings.height == 4 + 500 + 4
    assert "a line of 10001 bytes" in " ".join(run.notes)


def test_states(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with RunWriter(tmp_path) as writer:
        assert folder.state() == "growing"
        writer.describe({})
        with pytest.raises(UsageError, match="another process is writing"):
            RunWriter(tmp_path)
    assert folder.state() == "dead"
    with RunWriter(tmp_path) as writer:
        writer.finish({"outcome": "finished"})
    assert folder.state() == "done"
    assert [found.path for found in run_folders(tmp_path.parent) if found.path == tmp_path] == [tmp_path]


def test_a_killed_writer_leaves_a_dead_run(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from leadline.store.writer import RunWriter
writer = RunWriter(Path({str(tmp_path)!r}))
writer.describe({{}})
writer.append(0, "loss", "loss", 1.0)
print("ready", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        assert RunFolder(tmp_path).state() == "growing"
        process.send_signal(signal.SIGKILL)
    assert read(tmp_path).state == "dead"
    assert read(tmp_path).readings.height == 1


def test_a_full_disk_leaves_whole_lines_only(tmp_path: Path) -> None:
    code = f"""
import resource, signal, sys
from pathlib import Path
from leadline.core.errors import UnreadableError
from leadline.store.writer import RunWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = RunWriter(Path({str(tmp_path)!r}))
writer.describe({{}})
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    for step in range(1000):
        writer.append(step, "loss", "loss", 1.0)
except UnreadableError as error:
    print(error)
    sys.exit(error.exit_code)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 3
    assert ended.stdout.startswith(f"cannot write {tmp_path}/readings.jsonl")
    content = RunFolder(tmp_path).readings.read_bytes()
    assert content.endswith(b"}\n") and 900 < len(content) <= 1000
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, range(1))
    RunFolder(tmp_path).run_json.write_text(json.dumps({"format": 99}))
    with pytest.raises(UnreadableError, match="newer leadline"):
        read(tmp_path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"format": "x"}', b"[" * 100_000])
def test_damaged_json_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=r"run\.json"):
        read_json(path, what="the description of a run")


def test_numbers_survive_exactly(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-500, 500, dtype=float).clip(-300, 300)
    with RunWriter(tmp_path) as writer:
        writer.append(0, "p", "q", values.tolist())
    np.testing.assert_array_equal(Follower(RunFolder(tmp_path)).poll()["value"], values)


def test_notes_stand_at_their_numbers(tmp_path: Path) -> None:
    nan = float("nan")
    with RunWriter(tmp_path) as writer:
        writer.append(0, "ratio", "ratio", [0.5, nan, 0.7], notes={1: "the tensor does not require a gradient"})
        writer.append(0, "hessian", "top", nan, notes={-1: "it would need 12 GB"})
        writer.append(0, "rank", "rank", [nan, nan], notes={-1: "no hidden representation"})
    notes = Follower(RunFolder(tmp_path)).poll()["note"].tolist()
    wanted = [
        "",
        "the tensor does not require a gradient",
        "",
        "it would need 12 GB",
        *["no hidden representation"] * 2,
    ]
    assert notes == wanted


def test_no_byte_of_a_growing_line_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, range(1))
    path = RunFolder(tmp_path).readings
    follower = Follower(RunFolder(tmp_path), longest=1 << 12)
    asked: list[int] = []
    complete = Follower._complete
    monkeypatch.setattr(Follower, "_complete", lambda self, more: asked.append(len(more)) or complete(self, more))
    before = len(path.read_bytes())
    with path.open("ab") as handle:
        for _ in range(20):
            handle.write(b"x" * 1000)
            handle.flush()
            follower.lines()
        handle.write(b"\n" + line(1, "loss", "loss", 0.5))
    assert [found["step"] for found in follower.lines()] == [1]
    assert sum(asked) == path.stat().st_size and before < follower.offset == path.stat().st_size
    assert follower.notes == ["a line of 20001 bytes was skipped"]


def test_long_lines_are_put_together_from_small_pieces(tmp_path: Path) -> None:
    fill(tmp_path, range(3))
    whole, small = Follower(RunFolder(tmp_path)), Follower(RunFolder(tmp_path))
    pieces = [found for _ in range(200) for found in small.lines(most=7)]
    assert pieces == whole.lines() and small.offset == whole.offset


@pytest.mark.parametrize("longer", [False, True])
def test_a_run_that_starts_again_is_read_from_its_start(tmp_path: Path, longer: bool) -> None:
    fill(tmp_path, range(5))
    path = RunFolder(tmp_path).readings
    follower = Follower(RunFolder(tmp_path))
    assert len(follower.lines()) == 10
    path.unlink()
    assert follower.lines() == [] and follower.restarts == 0
    with RunWriter(tmp_path) as writer:
        for step in range(40 if longer else 1):
            writer.append(step, "loss", "loss", -step - 0.5)
    assert [found["value"] for found in follower.lines()] == [-step - 0.5 for step in range(40 if longer else 1)]
    assert follower.restarts == 1 and "cut or replaced" in follower.notes[0]


@pytest.mark.parametrize("value", [b"1" + b"0" * 400, b"1e400", b'"Infinity"', b"true", b"[[1]]"])
@pytest.mark.parametrize("step", [b"1", b"-1", b"1" + b"0" * 30])
def test_numbers_beyond_any_reading(tmp_path: Path, value: bytes, step: bytes) -> None:
    fill(tmp_path, range(1))
    with RunFolder(tmp_path).readings.open("ab") as handle:
        handle.write(b'{"step":' + step + b',"probe":"loss","name":"loss","value":' + value + b"}\n")
    fine = value == b"1e400" and step == b"1"
    assert read(tmp_path).readings.height == 4 + fine
