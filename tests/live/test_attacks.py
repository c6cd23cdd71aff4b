"""Folders and addresses made to do harm: nothing escapes the runs folder, and a bad run costs one clear note."""

import json
import os
import socket
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest
from live.served import Served, begin, describe, finish, served, until

from leadline.store.writer import line

SECRET = "the-secret-of-another-folder"
OUTSIDE = ("../outside", "..%2foutside", "%2e%2e/outside", "..\\outside", "a/../../outside", "/etc", "..", "%00", "~2e")


def hidden(root: Path) -> Path:
    """A runs folder beside which there is a run that nobody is to see."""
    folder = describe(root / "outside", json.dumps({"config": {"model": {"name": SECRET}}}))
    (folder / "readings.jsonl").write_bytes(line(0, "loss", "train/loss", 0.125))
    runs = root / "runs"
    finish(runs / "fine", steps=3)
    return runs


def raw(server: Served, path: str) -> bytes:
    """The first kilobytes of an answer to an address that no client has tidied up."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        found = b""
        while len(found) < 4096 and b"}" not in found and (more := connection.recv(4096)):
            found += more
        return found


def bad_note(server: Served, name: str) -> str:
    """The one note of a run."""
    (note,) = server.settled(rows=1)[name]["notes"]
    assert "\n" not in note and len(note) <= 240
    return str(note)


def test_no_parameter_leads_out_of_the_folder(tmp_path: Path) -> None:
    runs = hidden(tmp_path)
    with served(runs) as server:
        for word in OUTSIDE:
            for path in (f"/assets/{word}", f"/{word}"):
                assert raw(server, path).split(b" ", 2)[1] in (b"404", b"400"), path
            answer = raw(server, f"/events/runs?run={quote(word, safe='')}")
            known_to_be_none = b"there is no run of this name" in answer
            assert answer.split(b" ", 2)[1] == b"400" or known_to_be_none, word
            assert SECRET.encode() not in answer
        for query in ("", "?run=", "?run=a%00b", "?run=" + "a" * 900, "?" + "&".join(f"run=r{k}" for k in range(17))):
            assert server.get(f"/events/runs{query}").status_code == 400, query
        assert SECRET not in str(server.rows()) and list(server.rows()) == ["fine"]


@pytest.mark.parametrize("kind", ["folder", "run.json", "readings.jsonl", "diagnosis.json"])
def test_links_out_of_the_folder_are_not_followed(tmp_path: Path, kind: str) -> None:
    runs = hidden(tmp_path)
    if kind == "folder":
        (runs / "bad").symlink_to(tmp_path / "outside")
    else:
        folder = runs / "bad"
        folder.mkdir()
        if kind != "run.json":
            (folder / "run.json").write_text("{}")
        target = tmp_path / "outside" / kind
        target.touch()
        (folder / kind).symlink_to(target)
    with served(runs) as server:
        rows = server.when(lambda found: bool(found["bad"]["notes"]))
        (note,) = rows["bad"]["notes"]
        assert "link" in note and "not followed" in note
        assert SECRET not in str(rows) and rows["bad"]["loss"] is None
        with server.events("/events/runs?run=bad") as events:
            gone = next(events)
            assert gone.kind == "gone" and "link" in gone.data["why"] and SECRET not in str(gone.data)


def test_a_link_within_the_folder_is_a_run(tmp_path: Path) -> None:
    finish(tmp_path / "a", steps=3)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with served(tmp_path) as server:
        assert {row["state"] for row in server.settled(rows=2).values()} == {"done"}


@pytest.mark.parametrize("text", ["", "[]", "\x00\x01\x02", "{" * 100_000, '{"format": 99}', '"x"'])
def test_a_damaged_description_costs_one_note(tmp_path: Path, text: str) -> None:
    describe(tmp_path / "bad", text)
    with served(tmp_path) as server:
        assert "run.json" in bad_note(server, "bad")
        assert server.rows()["bad"]["state"] == "unreadable"
        with server.events("/events/runs?run=bad") as events:
            assert next(events).kind == "gone"


@pytest.mark.parametrize(
    "text",
    [
        '{"anatomy": 3, "places": [], "config": "x", "probes": 1, "environment": []}',
        '{"anatomy": {"blocks": [1, 2]}, "places": {"block": {"a": 1}}}',
        '{"config": {"model": ["x"]}, "steps": "many", "places": {"block": null}}',
    ],
)
def test_a_description_that_is_nonsense_does_no_harm(tmp_path: Path, text: str) -> None:
    folder = describe(tmp_path / "bad", text)
    (folder / "readings.jsonl").write_bytes(b"".join(line(k, "loss", "train/loss", 0.5) for k in range(5)))
    finish(tmp_path / "fine", steps=5)
    with served(tmp_path) as server:
        rows = server.settled(rows=1)
        assert rows["fine"]["state"] == "done" and rows["bad"]["loss"] == 0.5
        with server.events("/events/runs?run=bad") as events:
            told = next(events)
            assert told.kind in ("run", "gone") and "Traceback" not in str(told.data)


def test_binary_garbage_among_the_readings_is_left_out_and_noted(tmp_path: Path) -> None:
    folder = describe(tmp_path / "bad")
    good = [line(k, "loss", "train/loss", 0.5) for k in range(4)]
    garbage = bytes(range(256)).replace(b"\n", b"") * 50 + b"\n"
    (folder / "readings.jsonl").write_bytes(good[0] + good[1] + garbage + b'{"step": "x"}\n' + good[2] + good[3])
    with served(tmp_path) as server:
        assert "2 damaged lines" in bad_note(server, "bad")
        with server.events("/events/runs?run=bad") as events:
            run = until(events, "run").data
            (note,) = run["notes"]
            assert note.startswith("2 damaged lines before byte ")
            assert run["readings"][0]["steps"] == [0, 1, 2, 3]


def test_a_line_of_a_hundred_megabytes_fills_no_memory(tmp_path: Path) -> None:
    with begin(tmp_path / "bad", steps=5), served(tmp_path) as server:
        with server.events("/events/runs?run=bad") as events:
            until(events, "run")
            process = psutil.Process(server.process.pid)
            before = process.memory_info().rss
            with (tmp_path / "bad" / "readings.jsonl").open("ab", buffering=0) as file:
                for _ in range(100):
                    file.write(b"x" * (1 << 20))
                file.write(b"\n" + line(6, "loss", "train/loss", 0.25))
            told = until(events, "readings").data
            while told["readings"][-1]["step"] != 6:
                told = until(events, "readings").data
            assert process.memory_info().rss - before < 100 << 20
        rows = server.when(lambda found: bool(found["bad"]["notes"]) and found["bad"]["step"] == 7)
        assert "a line of 104857601 bytes was skipped" in rows["bad"]["notes"][0]


def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    folder = describe(tmp_path / "bad", "{}")
    os.mkfifo(folder / "readings.jsonl")
    with served(tmp_path) as server:
        assert "is a pipe, expected a plain file" in bad_note(server, "bad")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = describe(tmp_path / "bad", "{}")
    with (folder / "run.json").open("wb") as file:
        file.truncate(40 << 20)
    with served(tmp_path) as server:
        assert "its run.json has 40 MB" in bad_note(server, "bad")
