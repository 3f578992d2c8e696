"""What is taken out of a provider's words before anybody sees or keeps them."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.properties import steady
from threads.core.redaction import REASON_LENGTH, redacted

ODD_KEY = 'open "sesame"/ä+1'


@pytest.mark.parametrize(
    "key",
    [
        "sk-abcdef123456",
        "sk-or-v1-0123456789abcdef",
        "sk-abc123***********wxyz",
        "sk-ab***********wxyz",
        "abcd********wxyz",
        "********wxyz",
        "abcd********",
        "••••••••wxyz",
        "sk_live_0123456789",
        "gsk_0123456789abcdef",
        "xai-0123456789abcdef",
        "hf_0123456789abcdef",
        "nvapi-0123456789abcdef",
        "AIzaSyA0123456789abc",
        "Bearer abc.def-ghi",
        "Basic dXNlcjpwYXNz1=",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
        "key-0123456789abcdef",
    ],
)
def test_anything_like_a_key_is_taken_out(key: str) -> None:
    line = redacted(f"Incorrect API key provided: {key}. Look here")

    assert line in (
        "Incorrect API key provided: [key]. Look here",
        "Incorrect API key provided: [key] Look here",
    )


@pytest.mark.parametrize(
    "header",
    [
        "Authorization: hunter22",
        "authorization: Bearer hunter22",
        '"Authorization": "Bearer hunter22"',
        "'authorization': 'Basic hunter22'",
        "x-api-key: hunter22",
        '{\\"api_key\\": \\"hunter22\\"}',
        "api-key=hunter22",
        "GET /v1?key=hunter22&alt=sse",
        "access_token=hunter22",
    ],
)
def test_what_a_header_carries_is_taken_out(header: str) -> None:
    line = redacted(f"sent {header} to us")

    assert "hunter22" not in line
    assert "[key]" in line
    assert line.endswith(" to us")


@pytest.mark.parametrize(
    "words",
    [
        *("key_limit_exceeded", "monkey-business", "task-force", "risk-averse one"),
        *("basic authentication failed", "no bearer token", "a **bold** word"),
        *("user_message is empty", "org_hold", "team-mates", "wait... then go"),
        *("api_key: field required", "authorization is missing", "2 ** 10 = 1024"),
        *("### Heading", "mail us @ noon", "authentication: bearer only"),
    ],
)
def test_ordinary_words_stay(words: str) -> None:
    assert redacted(words) == words


@pytest.mark.parametrize(
    "person",
    ["user_2abCdEfGhIj", "user-0123456789", "org-AbCdEfGh12", "proj_x1y2z3a4b5"],
)
def test_whom_a_gateway_names_is_taken_out(person: str) -> None:
    assert redacted(f"limit of {person} on tokens") == "limit of [id] on tokens"


@pytest.mark.parametrize("address", ["ann@example.org", "a.b+c@mail.example.co.uk"])
def test_an_address_is_taken_out(address: str) -> None:
    assert redacted(f"<{address}> is blocked") == "<[email]> is blocked"


def test_the_configured_key_is_taken_out_whatever_it_looks_like() -> None:
    assert redacted("you sent 'open sesame'!", ["open sesame", "", " "]) == (
        "you sent '[key]'!"
    )


@pytest.mark.parametrize(
    "written",
    [
        ODD_KEY,
        quote(ODD_KEY),
        quote(ODD_KEY, safe=""),
        json.dumps(ODD_KEY),
        json.dumps(ODD_KEY, ensure_ascii=False),
        repr(ODD_KEY),
        base64.b64encode(ODD_KEY.encode()).decode(),
    ],
)
def test_the_configured_key_is_found_in_every_writing(written: str) -> None:
    line = redacted(f"you sent {written} here", [ODD_KEY])

    assert "sesame" not in line
    assert written not in line
    assert "[key]" in line
    assert line.endswith(" here")


@pytest.mark.parametrize(
    "masked",
    [
        "hunter22…4711",
        "hunt...4711",
        "hunterxxxxxxx11",
        "**4711",
        "hunte*11",
        "hunt••11",
    ],
)
def test_the_configured_key_is_found_with_its_middle_masked(masked: str) -> None:
    line = redacted(f"bad key ({masked}) here", ["hunter22-secret-4711"])

    assert line == "bad key ([key]) here"


def test_a_key_of_half_characters_hurts_nothing() -> None:
    assert redacted("x", ["\ud800abcdefgh"]) == "x"


def test_a_reason_is_one_bounded_line_that_can_be_stored() -> None:
    line = redacted("a\r\nWARNING forged\x1b[31m\0 \ud800" + "b" * 1000)

    assert line.startswith("a WARNING forged[31m b")
    assert len(line) == REASON_LENGTH
    assert line.endswith("…")


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "*", "a*", "api-key:", "Bearer ", "user_", "user-", "a@", "key=", "sk-"),
        *("…", "key-", "eyJ-", "hunt", "hunt.", "hunt*", "x", ".", " ", "a.b@c."),
    ],
)
def test_a_text_of_one_thing_is_read_in_one_pass(piece: str) -> None:
    """What grew with the square of the length would not come back from this."""
    line = redacted(piece * (2_000_000 // len(piece)), ["hunter22-secret-4711"])

    assert len(line) <= REASON_LENGTH


@steady
@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_and_key_give_one_line_without_the_key(text: str, key: str) -> None:
    line = redacted(f"{text}{key}{text}", [key])

    assert len(line) <= REASON_LENGTH
    assert line == "" or line.isprintable()
    if len(key) > 5 and key.isalnum():
        assert key not in line
