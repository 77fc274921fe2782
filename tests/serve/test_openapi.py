"""The description of the service, tried with generated requests: no failure, and no answer that it does not describe.

A few hundred cases here; thousands by `make fuzz-http`, which makes benchmarks/results/fuzz-http.json.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import checks
from serve.served import fill, serving

from evokey.serve.options import Limits, Options

CASES = int(os.environ.get("EVOKEY_HTTP_CASES", "300"))
RESULT = os.environ.get("EVOKEY_HTTP_RESULT")
CHECKS = [
    checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_schema_conformance,
]  # fmt: skip
SLOW = {"evolve"}
"""Operations that start a process, and are tried less often."""


def test_generated_requests_never_fail_and_are_answered_as_described(tmp_path: Path) -> None:
    statuses: Counter[str] = Counter()
    with serving(Options(at=fill(tmp_path / "kb"), auth=False, limits=Limits(body=200_000))) as url:
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        operations = [one.ok() for one in schema.get_all_operations()]
        for operation in operations:
            slow = operation.definition.raw.get("operationId") in SLOW
            attempt(operation, 2 if slow else max(CASES // len(operations), 3), statuses)
    assert sum(statuses.values()) >= CASES * 0.8
    assert not [code for code in statuses if code.startswith("5")]
    if RESULT:
        told = {
            "operations": len(operations),
            "cases": sum(statuses.values()),
            "statuses": dict(sorted(statuses.items())),
        }
        Path(RESULT).write_text(json.dumps({**told, "failures": 0}, indent=1) + "\n")


def attempt(operation: schemathesis.APIOperation, cases: int, statuses: Counter[str]) -> None:
    """So many requests to one operation, right and wrong ones."""
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]

    @given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes)))
    @settings(
        max_examples=cases, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )  # fmt: skip
    def call(case: schemathesis.Case) -> None:
        if "collection" in case.path_parameters and sum(statuses.values()) % 10:  # now and then another name
            case.path_parameters["collection"] = "default"
        response = case.call()
        statuses[f"{response.status_code}"] += 1
        case.validate_response(response, checks=CHECKS)

    call()
