"""The net under all loggers catches what it hangs there for."""

import logging
from collections.abc import Iterator

import pytest

from tests.canaries import CANARY, OURS, PROMPT, CanaryNet, raised


@pytest.fixture
def net() -> CanaryNet:
    return CanaryNet()


@pytest.fixture
def apart(net: CanaryNet) -> Iterator[logging.Logger]:
    """A logger under a net of its own: what falls here does not fail the run."""
    logger = logging.getLogger("apart")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(net)
    yield logger
    logger.removeHandler(net)
    assert net.seen == 1


def caught(net: CanaryNet) -> set[str]:
    return {words.partition(" ")[0] for words in net.take()}


def test_a_canary_in_a_message_is_caught(net: CanaryNet, apart: logging.Logger) -> None:
    apart.debug(f"They asked {PROMPT}")

    assert caught(net) == {"CANARY-PROMPT"}
    assert net.take() == []


def test_a_canary_in_an_argument_is_caught(
    net: CanaryNet, apart: logging.Logger
) -> None:
    apart.info("They asked %.3s", PROMPT)

    assert caught(net) == {"CANARY-PROMPT"}


def test_a_canary_in_an_exception_is_caught(
    net: CanaryNet, apart: logging.Logger
) -> None:
    error = raised(ValueError(PROMPT))
    told = (type(error), error, error.__traceback__)
    # As the standard library makes a record, not as the site does.
    apart.handle(logging.LogRecord("apart", logging.ERROR, "", 1, "Failed", (), told))

    assert caught(net) == {"CANARY-PROMPT"}


def test_a_canary_in_an_extra_is_caught(net: CanaryNet, apart: logging.Logger) -> None:
    apart.warning("Look", extra={"body": {"prompt": PROMPT}})

    assert caught(net) == {"CANARY-PROMPT"}


def test_a_harmless_record_is_not_caught(net: CanaryNet, apart: logging.Logger) -> None:
    apart.warning("PROVIDER_REFUSED code=http_401")

    assert net.take() == []


def test_the_net_of_the_run_hangs_under_our_loggers_at_every_level(
    canary_net: CanaryNet,
) -> None:
    for name in OURS:
        logger = logging.getLogger(f"{name}.somewhere")
        before = canary_net.seen
        logger.debug("A small matter")

        assert logger.isEnabledFor(logging.DEBUG)
        assert canary_net.seen == before + 1


def test_the_words_of_this_file_are_canaries() -> None:
    assert CANARY.search(PROMPT) is not None
