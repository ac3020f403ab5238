"""Requests made at random from the description of the interface: none of them is a bug."""

from __future__ import annotations

import httpx
import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from served_process import Server

#: An answer is one that the description knows, in its status, its type and its shape.
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
MODELS = ("animals", "numbers", "tags")
EXAMPLES = 15


@pytest.fixture(scope="module")
def fuzzed(models):
    server = Server(*(models / name for name in MODELS))
    schema = schemathesis.openapi.from_dict(httpx.get(f"{server.url}/openapi.json").json())
    yield (
        server,
        {f"{op.method} {op.path}": op for op in (x.ok() for x in schema.get_all_operations())},
    )
    server.end()


@pytest.mark.filterwarnings("default")  # of schemathesis itself
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_is_a_bug(fuzzed, mode):
    server, operations = fuzzed
    assert len(operations) > 10
    statuses = set()
    with requests.Session() as session:
        for name, operation in operations.items():
            case = operation.as_strategy(generation_mode=mode)

            @hypothesis.settings(
                max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck)
            )
            @hypothesis.given(case=case, model=hypothesis.strategies.sampled_from((*MODELS, None)))
            def ask(case, model):
                for key in case.path_parameters or {}:
                    if model is not None:
                        case.path_parameters[key] = model
                answer = case.call(base_url=server.url, session=session)
                statuses.add(answer.status_code)
                assert answer.status_code < 500, answer.text
                if answer.status_code not in (405, 406) and model is not None:
                    case.validate_response(answer, checks=CHECKS)

            try:
                ask()
            except hypothesis.errors.Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE, name  # nothing in it can be wrong
    assert {200, 400} <= statuses if mode is GenerationMode.POSITIVE else 400 in statuses
    assert not [line for line in server.log if line["event"] == "error"]
