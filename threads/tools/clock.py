"""The tool that tells the time."""

from datetime import datetime
from zoneinfo import ZoneInfo

from threads.tools.registry import ToolError


def current_time(timezone: str = "UTC") -> str:
    """Return the time in a zone, to the second, with its weekday and offset.

    Raises:
        ToolError: there is no such time zone.
    """
    try:
        zone = ZoneInfo(timezone)
    except (ValueError, OSError, LookupError):
        raise ToolError(
            f"There is no time zone {timezone[:60]!r}. Use a name such as Europe/Berlin."
        ) from None
    now = datetime.now(zone)
    return f"{now:%A}, {now.isoformat(timespec='seconds')} ({timezone})"
