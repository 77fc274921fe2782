"""The HTTP client against a real server: what is tried again, what is told at once, and what is never told."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from typing import Any

import pytest
from wire import Clock, Reply, Wire

from evokey.errors import InvalidSettings, LLMFailed, ServiceFailed
from evokey.http.client import Provider, Service

KEY = "sk-very-secret-1234567890"
ASKED = {"model": "wordllama", "input": ["a text"]}
OK = Reply(body={"fine": True})
Asker = Callable[..., Service]


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(wire: Wire, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Asker:
    """A service at its own home, so that it needs its key. Sleeping takes no time."""
    monkeypatch.setenv("SOME_KEY", KEY)
    provider = Provider("some", wire.url, "SOME_KEY")

    def make(**options: Any) -> Service:
        return Service(provider, **{"now": clock.now, "sleep": clock.sleep, "chance": lambda: 1.0, **options})

    return make


def test_a_call_carries_the_key_and_the_body_and_brings_the_answer(service: Asker, wire: Wire) -> None:
    wire.first = [OK]
    assert service().post("/embeddings", {"text": "naïve \ud800"}) == {"fine": True}
    (request,) = wire.requests
    assert (request.path, request.body) == ("/v1/embeddings", {"text": "naïve ?"})
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_a_provider_may_take_its_key_in_a_header_of_its_own(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", f" {KEY}\n")
    wire.first = [OK]
    Service(Provider("some", wire.url, "SOME_KEY", "x-api-key", {"version": "7"})).post("messages", {})
    headers = wire.requests[0].headers
    assert (headers["x-api-key"], headers["version"], "authorization" in headers) == (KEY, "7", False)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again_with_growing_pauses(
    service: Asker, wire: Wire, clock: Clock, status: int
) -> None:
    wire.first = [Reply(status, {"error": "busy"})] * 3 + [OK]
    assert service().post("x", {}) == {"fine": True}
    assert clock.slept == [0.5, 1.0, 2.0]


def test_pauses_differ_by_chance_so_that_clients_do_not_return_together(
    service: Asker, wire: Wire, clock: Clock
) -> None:
    wire.first = [Reply(500), OK]
    service(chance=lambda: 0.0).post("x", {})
    assert clock.slept == [0.25]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 307])
def test_what_will_not_pass_is_told_at_once(service: Asker, wire: Wire, clock: Clock, status: int) -> None:
    wire.first = [Reply(status, {"error": {"message": "no such thing."}})]
    with pytest.raises(
        ServiceFailed, match=rf"^some \(http://127\.0\.0\.1:\d+/v1\) answered {status}: no such thing\. "
    ):
        service().post("x", {})
    assert (len(wire.requests), clock.slept) == (1, [])


def test_retry_after_in_seconds_is_kept_to(service: Asker, wire: Wire, clock: Clock) -> None:
    wire.first = [Reply(429, {}, {"retry-after": "7"}), OK]
    service(chance=lambda: 0.0).post("x", {})
    assert clock.slept == [7.0]


def test_retry_after_as_a_date_is_kept_to(service: Asker, wire: Wire, clock: Clock) -> None:
    wire.first = [Reply(503, {}, {"retry-after": formatdate(time.time() + 40, usegmt=True)}), OK]
    service(chance=lambda: 0.0).post("x", {})
    assert 30 < clock.slept[0] <= 40


@pytest.mark.parametrize("header", ["soon", "Wed, 99 Foo 2020", "nan", "-3"])
def test_a_retry_after_that_says_nothing_is_no_obstacle(service: Asker, wire: Wire, clock: Clock, header: str) -> None:
    wire.first = [Reply(429, {}, {"retry-after": header}), OK]
    assert service(chance=lambda: 0.0).post("x", {}) == {"fine": True}
    assert 0 <= clock.slept[0] <= 0.5


def test_a_pause_beyond_patience_is_not_waited_for(service: Asker, wire: Wire, clock: Clock) -> None:
    wire.first = [Reply(429, {"message": "Too many"}, {"retry-after": "3600"})]
    with pytest.raises(ServiceFailed, match=r"429: Too many\. Lower .* asks to wait 3600 s, over 120 s"):
        service().post("x", {})
    assert clock.slept == []


def test_an_account_without_money_is_not_asked_again(service: Asker, wire: Wire) -> None:
    wire.first = [Reply(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})]
    with pytest.raises(ServiceFailed, match="You exceeded your quota"):
        service().post("x", {})
    assert len(wire.requests) == 1


def test_the_last_attempt_tells_how_often_it_was_tried(service: Asker, wire: Wire) -> None:
    wire.first = [Reply(500, b"<html>oops</html>")] * 3
    with pytest.raises(ServiceFailed, match=r"answered 500\. Try again later\. \(tried 3 times\)$"):
        service(retries=2).post("x", {})
    assert len(wire.requests) == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "openai's way", "type": "x"}}, "openai's way"),
        ({"message": "cohere's way"}, "cohere's way"),
        ({"detail": "voyage's way"}, "voyage's way"),
        ({"detail": [{"loc": ["body"], "msg": "fastapi's way"}]}, "fastapi's way"),
        ({"error": "tei's way", "error_type": "Validation"}, "tei's way"),
        (b"plain\nwords", "plain words"),
    ],
)
def test_what_a_service_says_is_found_in_every_form(service: Asker, wire: Wire, body: Any, said: str) -> None:
    wire.first = [Reply(400, body)]
    with pytest.raises(ServiceFailed, match=f"400: {said}. Check"):
        service().post("x", {})


def test_a_long_message_is_cut_to_a_line(service: Asker, wire: Wire) -> None:
    wire.first = [Reply(400, {"message": "many words\n" * 1000})]
    with pytest.raises(ServiceFailed) as caught:
        service().post("x", {})
    assert len(str(caught.value)) < 350 and "\n" not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"half": ', b"\xff\xfe", b"[" * 100_000])
def test_what_is_not_json_is_told_so(service: Asker, wire: Wire, body: bytes) -> None:
    wire.first = [Reply(200, body)]
    with pytest.raises(ServiceFailed, match="sent what is not JSON"):
        service().post("x", {})


def test_an_answer_that_is_no_object_is_told_so(service: Asker, wire: Wire) -> None:
    wire.first = [Reply(200, [1, 2])] * 2
    with pytest.raises(ServiceFailed, match="a list where a JSON object is expected"):
        service().post("x", {})
    assert service().ask("x", {}) == [1, 2]


def test_a_service_that_does_not_answer_in_time_is_given_up(service: Asker, wire: Wire, clock: Clock) -> None:
    wire.first = [Reply(delay=0.6)] * 2
    with pytest.raises(ServiceFailed, match=r"did not answer within 0\.1 s\. Raise timeout.* \(tried 2 times\)"):
        service(timeout=0.1, retries=1).post("x", {})
    assert clock.slept == [0.5]


def test_an_answer_that_drips_is_given_up_too(service: Asker, wire: Wire) -> None:
    wire.first = [Reply(body=[0] * 50, drip=0.05)]
    begun = time.monotonic()
    with pytest.raises(ServiceFailed, match=r"did not answer within 0\.3 s"):
        service(timeout=0.3, retries=0, now=time.monotonic).post("x", {})
    assert time.monotonic() - begun < 2


def test_an_answer_that_breaks_off_is_asked_for_again(service: Asker, wire: Wire) -> None:
    wire.first = [Reply(body={"half": 1}, missing=10), OK]
    assert service().post("x", {}) == {"fine": True}


def test_a_service_that_is_not_there_is_told_with_its_address(clock: Clock) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    asked = Service(Provider("some", f"http://127.0.0.1:{port}"), retries=2, sleep=clock.sleep)
    with pytest.raises(ServiceFailed, match=rf"some \(http://127.0.0.1:{port}\) could not be reached .*Is it running"):
        asked.post("x", {})
    assert len(clock.slept) == 2


def test_a_missing_key_is_asked_for_by_its_name(service: Asker, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(ServiceFailed, match="needs a key, and the environment variable SOME_KEY is not set"):
        service().post("x", {})
    with pytest.raises(ServiceFailed, match="OTHER_KEY is not set"):
        service(key_env="OTHER_KEY").post("x", {})
    assert wire.requests == []


def test_the_key_is_read_when_it_is_needed(service: Asker, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = service()
    monkeypatch.setenv("SOME_KEY", "another")
    wire.first = [OK]
    asked.post("x", {})
    assert wire.requests[0].headers["authorization"] == "Bearer another"


def test_a_host_that_is_not_the_providers_gets_no_key_unless_it_is_named(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    provider = Provider("some", "https://api.some.example/v1", "SOME_KEY")
    wire.first = [OK, OK, Reply(401)]
    Service(provider, base_url=wire.url).post("x", {})
    Service(provider, base_url=wire.url, key_env="SOME_KEY").post("x", {})
    assert ["authorization" in request.headers for request in wire.requests] == [False, True]
    with pytest.raises(
        ServiceFailed, match="No key was sent: name the environment variable that holds it with key_env"
    ):
        Service(provider, base_url=wire.url).post("x", {})


def test_the_key_is_in_no_error_repr_or_log(
    service: Asker, wire: Wire, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    told = [repr(service()), str(vars(service()))]
    echo = {"error": {"message": f"Incorrect API key provided: {KEY} (sk-ve*******7890) for {KEY[:5]}****"}}
    for reply in (
        Reply(401, echo),
        Reply(400, f"bad {KEY}".encode()),
        Reply(429, echo),
        Reply(500, echo),
        Reply(200, f"{KEY} is no JSON".encode()),
        Reply(delay=0.5),
    ):
        wire.first = [reply] * 2
        with pytest.raises(ServiceFailed) as caught:
            service(retries=1, timeout=0.2).post("x", {})
        told += [str(caught.value), repr(caught.value), repr(caught.value.__cause__)]
    wire.first = [Reply(200, f'data: {{"error": "{KEY}"}}\n\n'.encode())]
    with pytest.raises(ServiceFailed) as caught:
        list(service().stream("x", {}))
    told.append(str(caught.value))
    for wrong in (f"{KEY}\nx", f"{KEY}é"):
        monkeypatch.setenv("SOME_KEY", wrong)
        with pytest.raises(ServiceFailed, match="SOME_KEY contains characters that are not allowed") as caught:
            service().post("x", {})
        told += [str(caught.value), repr(caught.value.__cause__), repr(caught.value.__context__)]
    told.append(caplog.text)
    assert "Trying again" in caplog.text
    for text in told:
        assert KEY not in text and "sk-ve" not in text and "7890" not in text


@pytest.mark.parametrize(
    "address",
    ["https://user:secret@host/v1", "https://host/v1?key=secret", "ftp://host", "host/v1", "https://", "\x00"],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InvalidSettings, match="base_url of some") as caught:
        Service(Provider("some", "https://host"), base_url=address)
    assert "secret" not in str(caught.value).replace("no secrets", "")


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"retries": -1}, {"parallel": 0}, {"requests_per_minute": 0}])
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings, match="some needs timeout > 0"):
        Service(Provider("some", "https://host"), **wrong)


def test_no_minute_sees_more_calls_than_it_may(service: Asker, wire: Wire, clock: Clock) -> None:
    wire.first = [OK] * 8
    asked, times = service(requests_per_minute=3), []
    for _ in range(8):
        asked.post("x", {})
        times.append(clock.time - 1000)
        clock.time += 1
    assert times == [0, 1, 2, 60, 61, 62, 120, 121]


def test_attempts_count_as_calls(service: Asker, wire: Wire, clock: Clock) -> None:
    wire.first = [Reply(500), Reply(500), OK]
    service(requests_per_minute=2).post("x", {})
    assert clock.time - 1000 == 60


def test_threads_share_the_pace_and_the_room() -> None:
    clock = Clock()
    with Wire(delay=0.03) as wire:
        asked = Service(
            Provider("some", wire.url), parallel=3, requests_per_minute=10, now=clock.now, sleep=clock.sleep
        )
        done = asked.together(lambda number: (number, asked.post("embeddings", ASKED)["object"]), range(12))
        assert done == [(number, "list") for number in range(12)]
        assert 2 <= wire.most_at_once <= 3
        assert len(clock.slept) >= 1


def test_callers_with_threads_of_their_own_share_the_room_too() -> None:
    with Wire(delay=0.05) as wire, ThreadPoolExecutor(12) as pool:
        asked = Service(Provider("some", wire.url), parallel=3)
        for call in [pool.submit(asked.post, "embeddings", ASKED) for _ in range(12)]:
            assert call.result()["object"] == "list"
        assert wire.most_at_once == 3


def test_the_first_failure_ends_what_has_not_begun(service: Asker, wire: Wire) -> None:
    wire.first = [Reply(400, delay=0.05)] * 50
    asked = service(parallel=2)
    with pytest.raises(ServiceFailed):
        asked.together(lambda _: asked.post("x", {}), range(50))
    assert len(wire.requests) < 10


def test_a_stream_gives_each_event_and_ends_with_done(service: Asker, wire: Wire) -> None:
    sent = ': ping\n\ndata: {"a": "x\u2028y\x85é"}\n\nevent: b\r\ndata: {"b":\r\ndata: 2}\r\n\r\n'
    sent += "data: [DONE]\n\ndata: {}\n\n"
    wire.first = [Reply(body=sent.encode(), drip=0.0005)]
    assert list(service().stream("x", {"q": 1})) == [{"a": "x\u2028y\x85é"}, {"b": 2}]
    assert wire.requests[0].body == {"q": 1, "stream": True}


def test_a_stream_is_tried_again_before_its_beginning_and_not_after(service: Asker, wire: Wire) -> None:
    wire.first = [Reply(500), Reply(body=b'data: {"a": 1}\n\n', missing=5)]
    events = service(failure=LLMFailed).stream("x", {})
    assert next(events) == {"a": 1}
    with pytest.raises(LLMFailed, match="ended in the middle of its answer"):
        next(events)
    assert len(wire.requests) == 2


def test_an_error_inside_a_stream_is_an_error(service: Asker, wire: Wire) -> None:
    sent = b'data: {"a": 1}\n\nevent: error\ndata: {"type": "error", "error": {"message": "Overloaded"}}\n\n'
    wire.first = [Reply(body=sent)]
    with pytest.raises(ServiceFailed, match="ended in the middle of its answer: Overloaded"):
        list(service().stream("x", {}))


def test_a_stream_that_is_left_makes_room_for_the_next(service: Asker, wire: Wire) -> None:
    asked = service(parallel=1)
    wire.first = [Reply(body=b'data: {"a": 1}\n\ndata: {"a": 2}\n\n'), OK]
    events = asked.stream("x", {})
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert asked.post("x", {}) == {"fine": True}
