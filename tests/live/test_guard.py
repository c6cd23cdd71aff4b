"""Who is answered: under which names, by which methods, from which pages, and with which token; over real HTTP."""

import socket
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from live.served import Served, finish, served

from leadline.live.guard import Door

ANSWERS = ("/", "/show", "/runs.json", "/about.json", "/assets/list.js", "/assets/plotly.js", "/nothing", "/assets/x")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    runs = tmp_path_factory.mktemp("runs")
    finish(runs / "a")
    with served(runs) as found:
        yield found


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    runs = tmp_path_factory.mktemp("runs")
    finish(runs / "a")
    with served(runs, "--token", "--allow-host", "lab.example") as found:
        yield found


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:9000", "[::1]:8765", "localhost."])
def test_names_of_this_machine_are_known(host: str) -> None:
    assert Door().knows(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "localhost:80:80",
        "localhost@evil",
        "a b",
        "10.0.0.1",
        "[::1",
        "127.0.0.1:999999",
        "evil.example\\localhost",
        "localhost/../evil",
    ],
)
def test_other_names_are_not(host: str) -> None:
    assert not Door().knows(host)


def test_where_it_listens_to_others_any_address_is_known_but_no_name() -> None:
    door = Door(names=("lab",), addresses=True)
    assert door.knows("10.1.2.3:8765") and door.knows("[fe80::1]:80") and door.knows("lab:1")
    assert not door.knows("evil.example:8765") and not door.knows("localhost")


@pytest.mark.parametrize("path", ANSWERS)
def test_another_host_name_is_refused_everywhere(server: Served, path: str) -> None:
    answer = server.get(path, headers={"Host": f"evil.example:{server.port}"})
    assert answer.status_code == 403 and "--allow-host" in answer.text
    assert "content-security-policy" in answer.headers


def test_no_host_two_hosts_and_hosts_in_the_address_are_refused(server: Served) -> None:
    for lines, status in (
        ("GET / HTTP/1.1\r\n", b"400"),
        ("GET / HTTP/1.0\r\n", b"403"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n", b"400"),
        ("GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n", b"403"),
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
            raw.sendall(f"{lines}Connection: close\r\n\r\n".encode())
            assert raw.recv(4096).split(b" ")[1] == status, lines


@pytest.mark.parametrize("path", ANSWERS)
def test_every_answer_keeps_the_browser_strict(server: Served, path: str) -> None:
    answer = server.get(path)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';") and "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy or (path == "/show" and policy.count("unsafe") == 1)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in answer.headers and "server" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_written(server: Served, method: str) -> None:
    for path in ("/", "/runs.json", "/events/list", "/show?run=a"):
        answer = httpx.request(method, server.base + path)
        assert answer.status_code == 405 and answer.headers["allow"] == "GET, HEAD"


def test_pages_from_elsewhere_may_link_but_not_fetch(server: Served) -> None:
    fetched = server.get("/runs.json", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
    followed = server.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert (fetched.status_code, followed.status_code) == (403, 200)


def test_what_is_asked_for_the_head_alone_ends(server: Served) -> None:
    for path in ("/", "/events/list", "/events/runs?run=a"):
        assert httpx.head(server.base + path, timeout=5).status_code == 200


@pytest.mark.parametrize("path", [*ANSWERS, "/events/list", "/events/runs?run=a", "/?token=", "/?token=wrong"])
def test_without_the_token_nothing_is_told(locked: Served, path: str) -> None:
    wrong = {"Authorization": "Bearer wrong", "Cookie": f"leadline={'x' * 32}"}
    for headers in ({}, wrong):
        answer = locked.get(path, headers=headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert len(answer.text) < 200


def test_the_address_with_the_token_becomes_a_cookie_and_an_address_without(locked: Served) -> None:
    token = parse_qs(urlsplit(locked.url).query)["token"][0]
    assert len(token) >= 32
    answer = locked.get(f"/show?run=a&token={token}")
    assert answer.status_code == 303 and answer.headers["location"] == "/show?run=a"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "samesite=lax" in cookie.lower()
    opened = locked.get("/runs.json", headers={"Cookie": cookie.partition(";")[0]})
    assert opened.status_code == 200 and opened.json()["rows"][0]["name"] == "a"
    assert locked.get("/runs.json", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_the_token_opens_no_other_host_and_leads_nowhere_else(locked: Served) -> None:
    token = parse_qs(urlsplit(locked.url).query)["token"][0]
    assert locked.get(f"/?token={token}", headers={"Host": "evil.example"}).status_code == 403
    assert locked.get(f"/?token={token}", headers={"Host": "lab.example:80"}).status_code == 303
    for path in ("//evil.example/", "/\\evil.example/", "/%2f/evil.example", "/%0d%0aX-Evil:%201"):
        answer = locked.get(f"{path}?token={token}")
        assert answer.status_code == 303 and "x-evil" not in answer.headers
        assert answer.headers["location"].startswith("/") and not answer.headers["location"].startswith(("//", "/\\"))
