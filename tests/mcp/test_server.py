"""The MCP server as the SDK's own client sees it, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from agents import by_http, by_stdio, call, refuse, serving, talk
from llm.wire_chat import openai, sent
from llm.wire_chat import serving as chatting
from mcp import Client
from mcp.shared.exceptions import MCPError
from postgres_server import Server

import evokey
from evokey.serve.keys import Key, KeyRing
from evokey.serve.options import Options

DOCUMENTS = [
    {
        "id": "docs/install.md",
        "title": "Install",
        "text": "Run pip install evokey in a shell.",
        "metadata": {"l": "en"},
    },
    {"id": "search.md", "title": "Search", "text": "Call search with a question.", "metadata": {"l": "en"}},
    {"id": "forget.md", "title": "Forget", "text": "Erase what somebody taught.", "metadata": {"l": "en"}},
    {"id": "search.md#pay", "title": "Salaries", "text": "What everybody earns here.", "metadata": {"l": "de"}},
]
TOOLS = ["search", "used", "teach", "explain", "stats", "evolve", "forget"]


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add(DOCUMENTS)
    return tmp_path / "kb"


def key(at: Path, name: str, *scopes: str, **more: Any) -> str:
    return KeyRing(at).create(Key(name, frozenset(scopes), **more))


@contextmanager
def connect(how: str, at: Path) -> Iterator[Any]:
    if how == "stdio":
        yield by_stdio(at)
        return
    with serving(Options(at=at)) as address:
        yield by_http(address, key(at, "all", "admin"))


async def teach_and_forget(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    found = await call(client, "search", query="put it on my machine, erase")
    assert [hit["id"] for hit in found["hits"]] == ["forget.md"]
    said = await call(
        client, "teach", query="put it on my machine", relevant=["docs/install.md"], units=["set up the package"]
    )
    assert said["pending"] == 1
    report = await call(client, "evolve")
    assert report["published"], report
    hits = (await call(client, "search", query="put it on my machine"))["hits"]
    assert hits[0]["id"] == "docs/install.md"
    told = await call(client, "explain", document="docs/install.md", query="put it on my machine")
    assert (told["rank_before"], told["rank_after"], told["queries"]) == (None, 1, ["put it on my machine"])
    page = await client.read_resource(hits[0]["uri"])
    assert page.contents[0].text == "Run pip install evokey in a shell."  # type: ignore[union-attr]
    assert (await call(client, "forget", query="put it on my machine", preview=True))["lessons"] == 1
    assert (await call(client, "forget", query="put it on my machine"))["lessons"] == 1
    assert (await call(client, "search", query="put it on my machine"))["hits"] == []
    counts = await call(client, "stats")
    assert (counts["documents"], counts["lessons"], counts["documents_touched"]) == (4, 0, 0)


@pytest.mark.parametrize("how", ["stdio", "http"])
def test_an_agent_teaches_evolves_finds_reads_and_forgets(how: str, kb: Path) -> None:
    with connect(how, kb) as server:
        talk(server, teach_and_forget)


def test_clients_of_the_older_protocol_are_served_too(kb: Path) -> None:
    with connect("http", kb) as server:
        talk(server, teach_and_forget, "legacy")


def test_what_was_used_is_found_first_after_evolve_and_a_second_word_replaces_the_first(kb: Path) -> None:
    async def script(client: Client) -> None:
        found = await call(client, "search", query="erase a question")
        assert {hit["id"] for hit in found["hits"]} == {"forget.md", "search.md"}
        wrong = await call(client, "used", query_id=found["query_id"], ids=["forget.md"])
        right = await call(client, "used", query_id=found["query_id"], ids=["search.md"])
        again = await call(client, "used", query_id=found["query_id"], ids=["search.md"])
        assert wrong["lesson"] != right["lesson"] == again["lesson"] and again["pending"] == 1
        assert (await call(client, "evolve"))["published"]
        assert (await call(client, "search", query="erase a question"))["hits"][0]["id"] == "search.md"
        unknown = await refuse(client, "used", query_id=found["query_id"], ids=["docs/install.md"])
        assert "was not shown for this query_id" in unknown
        none = await call(client, "used", query_id=found["query_id"], ids=[])
        assert none == {"lesson": None, "pending": 0}

    with connect("http", kb) as server:
        talk(server, script)


def test_annotations_say_what_changes_the_memory_and_descriptions_when_to_call(kb: Path) -> None:
    async def script(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        erases = {name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint}
        assert (reads, erases) == ({"search", "explain", "stats"}, {"forget"})
        assert all(
            "Call it" in " ".join(str(tool.description).split()) for name, tool in tools.items() if name != "stats"
        )
        assert "used" in str(client.instructions)
        before = (await call(client, "stats"), evokey_epochs(kb))
        await call(client, "search", query="erase")
        await call(client, "explain", document="forget.md", query="erase")
        assert (await call(client, "stats"), evokey_epochs(kb)) == before

    with connect("http", kb) as server:
        talk(server, script)


def test_a_memory_with_a_language_model_answers_and_cites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    async def script(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = tools["ask"].annotations
        assert hints and hints.read_only_hint and hints.open_world_hint
        told = await call(client, "ask", query="put it on my machine, install")
        assert (told["text"], told["cited"]) == ("Run pip [1].", ["docs/install.md"])
        await call(client, "used", query_id=told["query_id"], ids=["docs/install.md"])

    with chatting() as chat:
        chat.play(sent(openai("Run pip [1].")))
        llm = {"name": "openai", "model": "small", "base_url": chat.address, "retries": 0}
        with evokey.open(tmp_path / "kb", encoder="bm25", llm=llm, generator="cited") as memory:
            memory.add(DOCUMENTS)
        with connect("http", tmp_path / "kb") as server:
            talk(server, script)
    with evokey.open(tmp_path / "kb") as memory:
        assert [lesson.query for lesson in memory.lessons()] == ["put it on my machine, install"]


def evokey_epochs(at: Path) -> int:
    with evokey.open(at) as memory:
        return len(memory.epochs())


def test_a_key_sees_and_calls_only_what_its_scopes_allow(kb: Path) -> None:
    async def read(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "explain", "stats"]
        for tool, said in (
            ("teach", {"query": "a", "relevant": ["search.md"]}),
            ("evolve", {}),
            ("forget", {"query": "a"}),
        ):
            assert "needs a key with the scope" in await refuse(client, tool, **said)

    async def teach(client: Client) -> None:
        assert (await call(client, "teach", query="a", relevant=["search.md"]))["lesson"] == 1
        assert "needs a key with the scope admin" in await refuse(client, "evolve")

    with serving(Options(at=kb)) as address:
        talk(by_http(address, key(kb, "reader", "read")), read)
        talk(by_http(address, key(kb, "teacher", "teach")), teach)
    with evokey.open(kb) as memory:
        assert [one.actor for one in memory.lessons()] == ["teacher"]


def test_a_key_with_a_filter_reaches_no_document_outside_it_by_any_way(kb: Path) -> None:
    async def script(client: Client) -> None:
        assert (await call(client, "search", query="what everybody earns"))["hits"] == []
        wider = {"query": "what everybody earns", "where": {"l": ["en", "de"]}}
        assert (await call(client, "search", **wider))["hits"] == []
        listed = (await client.list_resources()).resources
        assert [one.name for one in listed] == ["docs/install.md", "search.md", "forget.md"]
        with pytest.raises(MCPError, match="no document has the id"):
            await client.read_resource("evokey://document/search.md%23pay")
        for tool, said in (
            ("explain", {"document": "search.md#pay"}),
            ("teach", {"query": "a", "relevant": ["search.md#pay"]}),
        ):
            assert "search.md#pay" in await refuse(client, tool, **said)
        assert "a key with a filter cannot" in await refuse(client, "evolve")
        assert (await call(client, "stats"))["documents"] == 3

    with serving(Options(at=kb)) as address:
        talk(by_http(address, key(kb, "english", "admin", where={"l": "en"})), script)


@pytest.mark.parametrize("said", [None, "evk_reader_wrong", "revoked"])
def test_nobody_enters_by_http_without_a_valid_key(said: str | None, kb: Path) -> None:
    if said == "revoked":
        said = key(kb, "gone", "read")
        KeyRing(kb).revoke("gone")
    with serving(Options(at=kb)) as address:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {} if said is None else {"Authorization": f"Bearer {said}"}
        answer = httpx2.post(address, json=asked, headers=headers)
        with pytest.raises(ExceptionGroup):
            talk(by_http(address, said), lambda client: client.list_tools())
    assert (answer.status_code, answer.headers["www-authenticate"].split()[0]) == (401, "Bearer")


def test_a_revoked_key_ends_in_the_middle_of_a_session(kb: Path) -> None:
    async def script(client: Client) -> None:
        await call(client, "stats")
        KeyRing(kb).revoke("short")
        await asyncio.sleep(1.2)  # keys are looked up once a second
        with pytest.raises(MCPError):
            await call(client, "stats")

    with serving(Options(at=kb)) as address:
        talk(by_http(address, key(kb, "short", "read")), script)


def test_a_long_list_of_documents_comes_page_by_page(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "many", encoder="bm25") as memory:
        memory.add({"id": f"d{number}", "text": "a"} for number in range(230))

    async def script(client: Client) -> list[str]:
        page = await client.list_resources()
        names = [one.name for one in page.resources]
        while page.next_cursor is not None:
            page = await client.list_resources(cursor=page.next_cursor)
            names += [one.name for one in page.resources]
        return names

    with serving(Options(at=tmp_path / "many", auth=False)) as address:
        assert talk(address, script) == [f"d{number}" for number in range(230)]


def test_by_stdio_the_owner_says_what_the_agent_may_do_and_who_it_is(kb: Path) -> None:
    async def script(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {*TOOLS} - {"evolve", "forget"}
        await call(client, "teach", query="a", relevant=["search.md"], units=["b c", "d"])
        assert "needs a key with the scope admin" in await refuse(client, "forget", query="a")

    talk(by_stdio(kb, "--scope", "teach", "--actor", "desk-bot"), script)
    with evokey.open(kb) as memory:
        assert [(one.actor, one.units) for one in memory.lessons()] == [("desk-bot", ("b c", "d"))]


def test_a_wrong_call_is_told_to_the_agent_with_the_way_out(kb: Path) -> None:
    async def script(client: Client) -> None:
        assert "no document has the id 'nothing'" in await refuse(client, "teach", query="a", relevant=["nothing"])
        assert "name what to forget" in await refuse(client, "forget")
        assert "Ask again" in await refuse(client, "used", query_id="0" * 32, ids=["search.md"])
        assert "language model" in await refuse(client, "ask", query="a")

    with serving(Options(at=kb, auth=False)) as address:
        talk(address, script)


def test_a_memory_in_a_database_is_served_by_stdio(server: Server) -> None:
    name = server.fresh_name()
    with evokey.open(server.url, name=name, encoder="bm25") as memory:
        memory.add(DOCUMENTS)
    talk(by_stdio(server.url, "--name", name), teach_and_forget)
