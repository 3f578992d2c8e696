"""What a cell that shows nothing new is doing, in the viewer's language."""

from time import monotonic

from django.utils.translation import gettext as _

from threads.rounds.live import LiveCell

# Requirement E12: nothing new for this long, and the page says why.
QUIET_SECONDS = 3


def note(live: LiveCell) -> str:
    """Return the status note of a cell, empty while its text is arriving.

    The caller has activated the language and escapes the result.
    """
    if live.is_over:
        return ""
    activity, now = live.activity, monotonic()
    if activity.kind == "tool":
        return _("Using the tool %(name)s…") % {"name": activity.name}
    quiet = int(now - max(activity.since, live.last_output_at))
    if activity.kind == "reissue":
        return _("No answer came. Trying again (attempt %(number)d)…") % {
            "number": activity.attempt
        }
    if activity.kind == "regenerate":
        return _("The answer was cut. Starting again (attempt %(number)d)…") % {
            "number": activity.attempt
        }
    if quiet < QUIET_SECONDS:
        return ""
    if now - live.last_reasoning_at < QUIET_SECONDS:
        return _("Thinking… (%(seconds)d s)") % {"seconds": quiet}
    return _("Waiting for the model… (%(seconds)d s)") % {"seconds": quiet}
