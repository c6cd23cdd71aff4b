"""Runs that grow, break off, begin again and go away, as a viewer is told of them; over real HTTP."""

import json
import shutil
import time
from pathlib import Path

import psutil
import pytest
from live.served import begin, describe, finish, grow, key, served, until

from leadline.store.writer import RunWriter, line

SOON = 1.0
"""Seconds within which a new reading is to be seen."""


def test_a_new_reading_is_seen_soon_and_told_once(tmp_path: Path) -> None:
    with begin(tmp_path / "a") as writer, served(tmp_path) as server, server.events("/events/runs?run=a") as events:
        run = until(events, "run")
        assert run.data["id"] == "a" and run.data["state"] == "growing" and run.data["anatomy"]["blocks"]
        (losses,) = [block for block in run.data["readings"] if block["probe"] == "loss"]
        assert losses["steps"] == list(range(50))
        for step in (50, 51, 52):
            written = time.monotonic()
            writer.append(step, "loss", "train/loss", 0.5)
            told = until(events, "readings")
            assert told.at - written < SOON
            assert told.data["readings"] == [{"step": step, "probe": "loss", "name": "train/loss", "value": 0.5}]


def test_what_json_has_no_number_for_comes_as_text(tmp_path: Path) -> None:
    with begin(tmp_path / "a") as writer, served(tmp_path) as server, server.events("/events/runs?run=a") as events:
        until(events, "run")
        writer.append(50, "loss", "train/loss", float("inf"))
        with (tmp_path / "a" / "readings.jsonl").open("ab") as file:
            file.write(b'{"step":51,"probe":"x","name":"y","value":NaN}\n')
        told = []
        while len(told) < 2:
            told += until(events, "readings").data["readings"]
        assert [one["value"] for one in told] == ["inf", "nan"]


def test_a_row_of_the_list_grows_with_the_run(tmp_path: Path) -> None:
    finish(tmp_path / "b")
    with begin(tmp_path / "a") as writer, served(tmp_path) as server, server.events("/events/list") as events:
        first = next(events).data
        assert first["keys"] == ["a", "b"]
        assert {row["key"]: (row["state"], row["step"], row["steps"]) for row in first["rows"]} == {
            "a": ("growing", 50, 400),
            "b": ("done", 50, 400),
        }
        writer.append(70, "loss", "train/loss", 0.25)
        written = time.monotonic()
        told = next(one for one in events if any(row["step"] == 71 for row in one.data["rows"]))
        assert told.at - written < SOON
        assert [(row["key"], row["loss"]) for row in told.data["rows"] if row["step"] == 71] == [("a", 0.25)]


def test_a_line_is_told_when_it_is_whole(tmp_path: Path) -> None:
    with begin(tmp_path / "a"), served(tmp_path) as server, server.events("/events/runs?run=a") as events:
        until(events, "run")
        whole = line(50, "loss", "train/loss", 0.5)
        with (tmp_path / "a" / "readings.jsonl").open("ab", buffering=0) as file:
            file.write(whole[:20])
            time.sleep(0.7)
            file.write(whole[20:] + line(51, "loss", "train/loss", 0.4)[:10])
        assert [one["step"] for one in until(events, "readings").data["readings"]] == [50]
    with served(tmp_path) as server, server.events("/events/runs?run=a") as events:
        run = until(events, "run").data
        assert run["state"] == "dead" and run["notes"] == ["a torn last line of 10 bytes was dropped"]


def test_a_run_that_breaks_off_is_dead_and_one_that_ends_is_done(tmp_path: Path) -> None:
    broken, ended = begin(tmp_path / "a"), begin(tmp_path / "b")
    with served(tmp_path) as server, server.events("/events/runs?run=a&run=b") as events:
        assert {until(events, "run").data["id"] for _ in "ab"} == {"a", "b"}
        broken.close()
        dead = until(events, "state").data
        assert (dead["id"], dead["state"], dead["outcome"]) == ("a", "dead", None)
        grow(ended, range(50, 60))
        ended.finish({"outcome": "finished", "steps": 60, "last": {"loss": 0.5, "accuracy": 0.9}})
        ended.close()
        seen = []
        while not seen or seen[-1].kind != "state":
            seen.append(next(one for one in events if one.data["id"] == "b"))
        assert seen[-1].data["outcome"]["last"] == {"loss": 0.5, "accuracy": 0.9}
        assert sum(len(one.data["readings"]) for one in seen if one.kind == "readings") == 11
        ends = {"a": "dead", "b": "done"}
        server.when(lambda rows: {name: row["state"] for name, row in rows.items()} == ends)


def test_a_deleted_run_is_gone_and_comes_again(tmp_path: Path) -> None:
    finish(tmp_path / "b")
    with begin(tmp_path / "a"), served(tmp_path) as server, server.events("/events/runs?run=a&run=b") as events:
        assert {until(events, "run").data["id"] for _ in "ab"} == {"a", "b"}
        shutil.rmtree(tmp_path / "a")
        gone = until(events, "gone")
        assert gone.data == {"id": "a", "name": "a", "why": "there is no run of this name in the folder"}
        server.when(lambda rows: list(rows) == ["b"])
        with begin(tmp_path / "a", steps=7):
            run = until(events, "run").data
            assert run["id"] == "a" and run["readings"][0]["steps"] == list(range(7))


def test_a_run_that_begins_again_is_described_again(tmp_path: Path) -> None:
    with begin(tmp_path / "a") as writer:
        pass
    with served(tmp_path) as server, server.events("/events/runs?run=a") as events:
        until(events, "run")
        readings = tmp_path / "a" / "readings.jsonl"
        readings.write_bytes(readings.read_bytes()[:300])
        run = until(events, "run").data
        assert run["notes"] == [f"a torn last line of {300 - len(b''.join(_whole(readings)))} bytes was dropped"]
        readings.unlink()
        with RunWriter(tmp_path / "a") as writer:
            grow(writer, range(3))
            run = until(events, "run").data
            assert run["state"] == "growing" and run["readings"][0]["steps"] == [0, 1, 2]


def _whole(path: Path) -> list[bytes]:
    return [one for one in path.read_bytes().splitlines(keepends=True) if one.endswith(b"\n")]


def test_a_judged_folder_is_described_again(tmp_path: Path) -> None:
    finish(tmp_path / "a")
    with served(tmp_path) as server, server.events("/events/runs?run=a") as events:
        until(events, "run")
        kept = {"verdict": "healthy", "reason": "kept", "confidence": 1.0, "findings": [], "measured": []}
        (tmp_path / "a" / "diagnosis.json").write_text(json.dumps({"format": 1, **kept}))
        assert until(events, "run").data["diagnosis"]["reason"] == "kept"


def test_the_verdict_follows_the_readings(tmp_path: Path) -> None:
    with begin(tmp_path / "a", steps=3) as writer, served(tmp_path) as server:
        with server.events("/events/runs?run=a") as events:
            assert until(events, "run").data["diagnosis"]["verdict"] == "undecided"
            for step in range(3, 400):
                writer.append(step, "loss", "train/loss", 2.3 * 0.98**step)
            told = until(events, "judge").data
            while told["diagnosis"]["verdict"] == "undecided":
                told = until(events, "judge").data
        assert told["diagnosis"]["verdict"] == "healthy"
        assert server.settled(rows=1)["a"]["verdict"] == "healthy"


def test_one_who_comes_again_gets_what_was_missed_and_no_more(tmp_path: Path) -> None:
    with begin(tmp_path / "a") as writer, served(tmp_path) as server:
        with server.events("/events/runs?run=a") as events:
            until(events, "run")
            writer.append(50, "loss", "train/loss", 0.5)
            mark = until(events, "readings").mark
        writer.append(51, "loss", "train/loss", 0.4)
        for options in ({"headers": {"Last-Event-ID": mark}}, {"params": {"run": "a", "after": mark}}):
            with server.events("/events/runs?run=a", **options) as events:
                news = next(events)
                assert news.kind == "readings" and [one["step"] for one in news.data["readings"]] == [51]
        for stale in ("1.0", "x", "1.0,2.0", "99999999999999999999.1", "../.."):
            with server.events("/events/runs?run=a", headers={"Last-Event-ID": stale}) as events:
                assert next(events).kind == "run"


def test_a_run_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    with served(tmp_path) as server, server.events("/events/runs?run=a") as events:
        assert until(events, "gone").data["id"] == "a"
        with begin(tmp_path / "a", steps=2):
            assert until(events, "run").data["state"] == "growing"


def test_the_folder_itself_may_go_and_come(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    finish(runs / "a")
    with served(runs) as server, server.events("/events/list") as events:
        assert next(events).data["keys"] == ["a"]
        runs.rename(tmp_path / "elsewhere")
        lost = next(one for one in events if one.data["trouble"]).data
        assert lost["keys"] == [] and "cannot list the runs" in lost["trouble"]
        (tmp_path / "elsewhere").rename(runs)
        assert next(one for one in events if one.data["keys"]).data["keys"] == ["a"]


def test_nothing_is_read_twice(tmp_path: Path) -> None:
    folder = describe(tmp_path / "a")
    long = b"".join(line(step, "loss", "train/loss", 0.5) for step in range(200_000))
    (folder / "readings.jsonl").write_bytes(long)
    with RunWriter(folder, resume_at=len(long)) as writer, served(tmp_path) as server:
        server.settled(rows=1)
        with server.events("/events/runs?run=a") as events:
            until(events, "run")
            process = psutil.Process(server.process.pid)
            before = process.io_counters().read_chars
            for step in range(200_000, 200_100):
                writer.append(step, "loss", "train/loss", 0.5)
                time.sleep(0.02)
            seen = 0
            while seen < 100:
                seen += len(until(events, "readings").data["readings"])
            assert process.io_counters().read_chars - before < len(long) // 10


@pytest.mark.parametrize("name", ["with space", "ünï", "a~b", "100%", "a&run=b", "#x", "<b>"])
def test_names_are_told_apart_and_shown_as_they_are(tmp_path: Path, name: str) -> None:
    finish(tmp_path / name, steps=2)
    finish(tmp_path / "b", steps=2)
    with served(tmp_path) as server:
        row = server.rows()[name]
        assert row["key"] == key(tmp_path / name)
        with server.events(f"/events/runs?run={row['key']}") as events:
            run = until(events, "run").data
            assert run["name"] == name and run["id"] == row["key"]
