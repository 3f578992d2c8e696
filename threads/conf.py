"""The sole reader of the project's own settings; builds frozen bounds.

`read()` raises `Misconfigured` naming the variable and what it must be; the
system check in `threads.checks` reports the same errors before anything runs.
"""

from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class Misconfigured(ImproperlyConfigured):
    """A variable of ours has a value that cannot be used."""

    def __init__(self, variable: str, problem: str, hint: str) -> None:
        super().__init__(f"{variable} {problem}")
        self.variable = variable
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Bounds:
    """Every bound of a round; times in seconds (requirements, constants)."""

    first_data_seconds: float
    idle_seconds: float
    round_cap_seconds: float
    call_retries: int
    retry_waits: tuple[float, ...]
    retry_window_seconds: float


def positive(variable: str) -> float:
    """Read one positive number of seconds.

    Raises:
        Misconfigured: the value is not a number above zero.
    """
    value = str(getattr(settings, variable))
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise Misconfigured(
            variable,
            f"is {value!r}, which is not a number of seconds",
            "Give a number above zero.",
        )
    return number


def whole(variable: str) -> int:
    """Read one whole number, zero allowed.

    Raises:
        Misconfigured: the value is anything else.
    """
    value = str(getattr(settings, variable)).strip()
    if not value.isdecimal():
        raise Misconfigured(
            variable,
            f"is {value!r}, which is not a whole number",
            "Give 0, 1, 2 or more.",
        )
    return int(value)


def waits(variable: str) -> tuple[float, ...]:
    """Read a comma-separated list of seconds.

    Raises:
        Misconfigured: a part is not a number of seconds.
    """
    value = str(getattr(settings, variable))
    try:
        numbers = tuple(float(part) for part in value.split(",") if part.strip())
    except ValueError:
        numbers = (-1.0,)
    if not numbers or any(not 0 <= number < float("inf") for number in numbers):
        raise Misconfigured(
            variable,
            f"is {value!r}, which is not a list of seconds",
            "Give numbers such as 15,45.",
        )
    return numbers


def bounds() -> Bounds:
    """Build the bounds in force.

    Raises:
        Misconfigured: a value cannot be used.
    """
    return Bounds(
        first_data_seconds=positive("CHAT_FIRST_DATA_SECONDS"),
        idle_seconds=positive("CHAT_IDLE_SECONDS"),
        round_cap_seconds=positive("CHAT_ROUND_CAP_SECONDS"),
        call_retries=whole("CHAT_CALL_RETRIES"),
        retry_waits=waits("CHAT_RETRY_WAITS"),
        retry_window_seconds=positive("CHAT_RETRY_WINDOW_SECONDS"),
    )


def gateway_configured() -> bool:
    """Tell whether the environment names a real gateway (design section 8)."""
    return bool(settings.OPENAI_BASE_URL or settings.OPENAI_API_KEY)
