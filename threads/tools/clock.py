"""The tool that tells the time."""

from datetime import datetime
from zoneinfo import ZoneInfo


def current_time(timezone: str = "UTC") -> str:
    """Return the time in a zone, to the second, with its weekday and offset.

    Raises:
        ValueError: there is no such time zone.
    """
    try:
        zone = ZoneInfo(timezone)
    except (ValueError, OSError, LookupError):
        raise ValueError(
            f"There is no time zone {timezone[:60]!r}. Use a name such as Europe/Berlin."
        ) from None
    now = datetime.now(zone)
    return f"{now:%A}, {now.isoformat(timespec='seconds')} ({timezone})"
