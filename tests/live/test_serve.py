"""Where the server listens, how it begins and how it ends."""

import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest
from live.served import finish, served, started

from leadline.cli import main
from leadline.core.errors import UsageError
from leadline.live.serve import listen, place


def close(at: object) -> None:
    for each in at.sockets:  # type: ignore[attr-defined]
        each.close()


def test_only_the_loopback_is_listened_to(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        process = psutil.Process(server.process.pid)
        found = [each.laddr for each in process.net_connections() if each.status == psutil.CONN_LISTEN]
        assert [(each.ip, each.port) for each in found] == [("127.0.0.1", server.port)]
        assert "token" not in server.url


def test_elsewhere_there_is_a_token() -> None:
    at = place("0.0.0.0", 0)
    close(at)
    assert len(at.door.token) >= 32 and at.url.endswith(f"/?token={at.door.token}") and at.door.addresses
    here = place("localhost", 0)
    close(here)
    assert here.door.token == "" and not here.door.addresses and here.url == f"http://localhost:{here.port}/"
    other = place("0.0.0.0", 0)
    close(other)
    assert other.door.token != at.door.token


def test_a_port_that_is_taken_is_said_and_the_usual_one_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = listen("127.0.0.1", 0)
    first.listen()
    port = first.getsockname()[1]
    with pytest.raises(UsageError, match=f"port {port} is in use; --port 0"):
        listen("127.0.0.1", port)
    monkeypatch.setattr("leadline.live.serve.PORT", port)
    (second,) = listen("127.0.0.1", None)
    assert second.getsockname()[1] != port
    first.close()
    second.close()


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none(port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path), "--port", str(port)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path / "none")]) == 3
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["watch", str(tmp_path / "file")]) == 3


def test_one_run_alone_can_be_watched_and_no_other_be_named(tmp_path: Path) -> None:
    finish(tmp_path / "a")
    finish(tmp_path / "b")
    with served(tmp_path / "a") as server:
        assert list(server.rows()) == ["a"]
        assert server.get("/about.json").json()["only"]
        with server.events("/events/runs?run=b&run=a") as events:
            assert {(one.kind, one.data["id"]) for one in (next(events), next(events))} == {("gone", "b"), ("run", "a")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once_though_somebody_looks(tmp_path: Path, number: signal.Signals) -> None:
    finish(tmp_path / "a")
    with served(tmp_path) as server, httpx.stream("GET", f"{server.base}/events/list") as answer:
        next(answer.iter_bytes())
        told = time.monotonic()
        server.process.send_signal(number)
        assert server.process.wait(10) == 0
        assert time.monotonic() - told < 5


def test_people_are_told_the_address_and_how_to_end_it(tmp_path: Path) -> None:
    with started(["watch", str(tmp_path)]) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        process.terminate()
        assert process.wait(10) == 0
        assert line.startswith(f"{tmp_path} is shown at http://127.0.0.1:") and line.endswith("/\n")
        assert process.stderr.read().endswith("Ctrl-C ends it\n")
