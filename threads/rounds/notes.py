"""What a cell that shows nothing new is doing, in the viewer's language."""

from dataclasses import dataclass
from math import ceil
from time import monotonic

from django.utils.translation import gettext as _

from threads.core.retry import Action
from threads.rounds.live import LiveCell
from threads.rounds.published import Activity

# Requirement E12: nothing new for this long, and the page says why.
QUIET_SECONDS = 3

NARRATED_SECONDS = 10.0
"""A wait that is longer is counted down; a short one is not (requirement B14)."""

AGAIN = (Action.REISSUE, Action.REGENERATE)


@dataclass(frozen=True, slots=True)
class Note:
    """What a page shows where the text goes on.

    `again` numbers the try that it tells of, 0 if it tells of none: pages say that
    aloud once, and not the seconds of a wait (requirement J10).
    """

    text: str = ""
    again: int = 0


def note(live: LiveCell) -> Note:
    """Return the note of a cell, empty while its text is arriving.

    The caller has activated the language and escapes the result.
    """
    activity, now = live.activity, monotonic()
    if live.is_over:
        return Note()
    if activity.kind in AGAIN:
        return Note(_again(activity, now), activity.attempt)
    if activity.kind == Action.FALLBACK:
        text = _("No answer came. Asking %(model)s…") % {"model": activity.name}
        return Note(text, activity.attempt)
    return Note(_status(live, activity, now))


def asking() -> Note:
    """Return the note of a round in which a person is to decide (F6)."""
    return Note(_("Waiting for your decision"))


def _status(live: LiveCell, activity: Activity, now: float) -> str:
    if activity.kind == "tool":
        seconds = int(now - activity.since)
        if seconds < QUIET_SECONDS:
            return _("Using the tool %(name)s…") % {"name": activity.name}
        values = {"name": activity.name, "seconds": seconds}
        return _("Using the tool %(name)s… (%(seconds)d s)") % values
    quiet = int(now - max(activity.since, live.last_output_at))
    if quiet < QUIET_SECONDS:
        return ""
    if now - live.last_reasoning_at < QUIET_SECONDS:
        return _("Thinking… (%(seconds)d s)") % {"seconds": quiet}
    return _("Waiting for the model… (%(seconds)d s)") % {"seconds": quiet}


def _again(activity: Activity, now: float) -> str:
    """Tell of another attempt, and of a long wait before it (B14, J2)."""
    values = {"number": activity.attempt, "total": activity.total}
    left = ceil(activity.until - now)
    is_wait = activity.until - activity.since > NARRATED_SECONDS and left > 0
    if activity.kind == Action.REGENERATE and is_wait:
        text = _(
            "The answer was cut. Starting again in %(seconds)d s (%(number)d/%(total)d)…"
        )
    elif activity.kind == Action.REGENERATE:
        text = _("The answer was cut. Starting again (%(number)d/%(total)d)…")
    elif is_wait:
        text = _(
            "No answer came. Trying again in %(seconds)d s (%(number)d/%(total)d)…"
        )
    else:
        text = _("No answer came. Trying again (%(number)d/%(total)d)…")
    return text % (values | {"seconds": left})
