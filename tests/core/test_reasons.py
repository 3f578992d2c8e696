"""What is read from an error body: unwrapped, reduced, redacted, on one line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.core.properties import steady
from threads.core.reasons import (
    LONGEST_WORDS,
    Reason,
    as_status,
    read,
    redacted,
    says_error,
)

USER_TEXT = "my grandmother's recipe"
FIELDS = [
    *("error", "message", "code", "type", "status", "metadata", "raw"),
    *("detail", "retry_after", "availability", "base_resp", "provider"),
]
DEEP = "[" * 100_000


@cases(
    ("body", "words"),
    [
        (None, ""),
        ("", ""),
        ("plain words", "plain words"),
        (5, "5"),
        (1.5, "1.5"),
        (True, "True"),
        (10**400, ""),
        ([], ""),
        (["one", "two"], "one · two"),
        ({}, ""),
        ({"message": "flat"}, "flat"),
        ({"error": "text"}, "text"),
        ({"error": "over_capacity"}, "over_capacity"),
        ({"error": {"message": "inner"}}, "inner"),
        ({"error": {"error": {"message": "nested twice"}}}, "nested twice"),
        ({"error": [{"message": "x"}]}, "x"),
        ({"error": {"message": '{"error": {"message": "in a text"}}'}}, "in a text"),
        ({"detail": "Not authenticated"}, "Not authenticated"),
        (
            {"detail": [{"loc": ["body", "n"], "msg": "Field required"}]},
            "Field required (body.n)",
        ),
        ({"message": {"detail": [{"msg": "Mistral says so"}]}}, "Mistral says so"),
        ({"base_resp": {"status_code": 1004, "status_msg": "login"}}, "login"),
        ({"error": {"message": "same", "metadata": {"raw": "same"}}}, "same"),
        ({"surprise": 1, "other": 2}, "an object with 2 fields"),
        ("<html><title>502 Bad Gateway</title><body>x</body>", "502 Bad Gateway"),
        ("<html><h1>No <b>way</b></h1></html>", "No  way"),
        ("<html><body>nothing named</body></html>", "an HTML page"),
    ],
)
def test_the_words_of_every_body_shape_are_found(body: object, words: str) -> None:
    assert read(body).words.strip() == words


@pytest.mark.parametrize(
    "raw",
    [
        {"error": {"message": "the cause"}},
        '{"error": {"message": "the cause"}}',
        "the cause",
        [{"message": "the cause"}],
    ],
)
def test_a_cause_that_a_router_wraps_is_read_before_its_own_words(raw: object) -> None:
    body = {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": raw, "provider_name": "DeepInfra"},
        }
    }

    reason = read(body)

    assert reason.words == "the cause · Provider returned error"
    assert reason.provider == "DeepInfra"
    assert reason.status == 400


@pytest.mark.parametrize(
    ("body", "names", "status"),
    [
        ({"error": {"code": "rate_limit_exceeded"}}, ("rate_limit_exceeded",), None),
        ({"error": {"code": 429}}, (), 429),
        ({"error": {"code": "429"}}, (), 429),
        ({"error": {"code": 200}}, (), None),
        ({"error": {"code": True}}, (), None),
        ({"type": "error", "error": {"type": "Overloaded"}}, ("overloaded",), None),
        ({"error": {"code": None, "type": "server_error"}}, ("server_error",), None),
        ({"error": {"status_code": 503}}, (), 503),
        ({"error": {"code": 1234}}, (), None),
        (
            {
                "error": {"code": "b", "availability": {"code": "a"}},
                "error_type": "c",
            },
            ("a", "c", "b"),
            None,
        ),
        ({"base_resp": {"status_code": 1008}}, ("base_resp_1008",), None),
        ({"base_resp": {"status_code": 0}}, (), None),
        ({"error_code": 18, "error_msg": "x"}, (), None),
        ({"error": 503}, (), 503),
        ({"error": "over_capacity"}, ("over_capacity",), None),
        ({"error": "no name"}, (), None),
        ({"error": {"http_status_code": 500}}, (), 500),
        (
            {"error": {"type": "a", "code": "b", "metadata": {"error_type": "c"}}},
            ("c", "b", "a"),
            None,
        ),
    ],
)
def test_names_come_most_specific_first_and_numbers_are_statuses(
    body: object, names: tuple[str, ...], status: int | None
) -> None:
    reason = read(body)

    assert reason.names == names
    assert reason.status == status


@pytest.mark.parametrize(
    "value",
    [0, 200, 299, 600, -400, True, None, "", "²", "4 0 0", "9" * 5000, 4.29],
    ids=lambda value: repr(value)[:9],
)
def test_what_is_no_refusing_status_is_not_read_as_one(value: object) -> None:
    assert as_status(value) is None


@pytest.mark.parametrize("value", [429, "429", " 429 "], ids=repr)
def test_a_status_may_be_a_number_or_its_digits(value: object) -> None:
    assert as_status(value) == 429


@cases("field", ["input", "flagged_input", "messages", "prompt"])
@cases("shape", ["object", "text", "torn", "repr", "in_a_list", "escaped", "pydantic"])
def test_what_a_person_wrote_is_never_quoted(field: str, shape: str) -> None:
    fault = {"msg": "Field wrong", field: USER_TEXT}
    body = {
        "object": {"error": fault},
        "text": json.dumps({"error": fault}),
        "torn": json.dumps({"error": {"metadata": {"raw": fault}}})[:-4],
        "repr": {"error": {"message": f"Error code: 400 - {fault!r}"}},
        "in_a_list": {"detail": [{"loc": ["body"], **fault}]},
        "escaped": {"error": "Field wrong: " + json.dumps(json.dumps(fault))},
        "pydantic": {
            "error": "Field wrong [type=string_type, "
            f"input_value={USER_TEXT!r}, input_type=str]"
        },
    }[shape]

    assert "grandmother" not in read(body).words
    assert "Field wrong" in read(body).words


def test_moderation_metadata_gives_its_fact_but_not_its_text() -> None:
    metadata = {"reasons": ["violence"], "flagged_input": USER_TEXT, "patterns": ["x"]}

    reason = read({"error": {"code": 403, "message": "no", "metadata": metadata}})

    assert reason.moderated
    assert reason.words == "no"


@pytest.mark.parametrize(
    ("field", "wait", "seconds"),
    [
        ("retry_after", 7, 7.0),
        ("retry_after_seconds", 1.5, 1.5),
        ("resets_in_seconds", 7139, 7139.0),
        ("retry_after", True, None),
        ("retry_after", "soon", None),
        ("retry_after", -1, None),
        ("retry_after", float("nan"), None),
        ("retry_after", float("inf"), None),
        ("retry_after", 10**400, None),
    ],
)
def test_a_wait_is_taken_only_where_it_is_one(
    field: str, wait: object, seconds: float | None
) -> None:
    assert read({"error": {field: wait}}).retry_after_seconds == seconds


@cases(
    ("body", "error"),
    [
        ({"error": {"message": "x"}}, True),
        ({"error": "x"}, True),
        ({"detail": "x"}, True),
        ([{"error": {"code": 429}}], True),
        ({"errors": [{"code": 10000, "message": "x"}]}, True),
        ({"code": 429}, True),
        ({"base_resp": {"status_code": 1008}}, True),
        ({"choices": [{"finish_reason": "error"}]}, True),
        ({"choices": [{"error": {"code": 502}}]}, True),
        ({"object": "list", "data": []}, False),
        ({"type": "ping"}, False),
        ({"usage": {"prompt_tokens": 3}}, False),
        ({"base_resp": {"status_code": 0}}, False),
        ([], False),
        ("x", False),
        ({"choices": [], "error": None}, False),
        ({"choices": [{"message": {"content": "whole"}}], "type": "x"}, False),
        ({}, False),
        ("<html>", False),
        (None, False),
    ],
)
def test_a_whole_answer_says_an_error_or_does_not(body: object, error: bool) -> None:
    assert says_error(body) is error


@pytest.mark.parametrize(
    "body", [DEEP, {"error": DEEP}, {"error": {"message": DEEP, "metadata": DEEP}}]
)
def test_json_of_absurd_depth_is_only_text(body: object) -> None:
    assert redacted(read(body).words).startswith("[[[")


@pytest.mark.parametrize("piece", ["<title>", "<h1>", "<", "<title ", "</title>"])
def test_a_page_of_one_tag_is_read_in_one_pass(piece: str) -> None:
    """What grew with the square of the length would not come back from this."""
    assert len(read("<" + piece * 500_000).words) <= 5_000


def test_what_is_read_of_many_words_is_bounded() -> None:
    body = {"errors": ["x" * 10_000] * 3, "message": ["y" * 10_000] * 9}

    assert len(read(body).words) <= LONGEST_WORDS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@steady
@given(json_values)
def test_no_body_makes_reading_fail(body: object) -> None:
    reason = read(body)

    assert isinstance(reason, Reason)
    assert redacted(reason.words).isprintable()
