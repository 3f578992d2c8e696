"""What every page with the list of threads shows."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from threads.choices import offered_choices, start_of
from threads.models import Thread
from threads.rendering.cells import with_states
from threads.sentences import edited_words

MOST_ROWS = 100
UNDO_KEY = "deleted_thread"


def grouped(threads: Iterable[Thread], today: date) -> list[tuple[str, list[Thread]]]:
    """Group threads, newest first, by the day they were last used."""
    groups: dict[str, list[Thread]] = {}
    for thread in threads:
        day = timezone.localdate(thread.updated_at)
        if day >= today:
            name = _("Today")
        elif day == today - timedelta(days=1):
            name = _("Yesterday")
        else:
            name = _("Earlier")
        groups.setdefault(name, []).append(thread)
    return list(groups.items())


def sidebar(request: HttpRequest, current: Thread | None = None) -> dict[str, Any]:
    """Return the context of the list of threads and of the undo bar."""
    own = Thread.objects.of(request.user).order_by("-updated_at", "-pk")
    shows_all = "all" in request.GET
    rows = list(with_states(own)[: None if shows_all else MOST_ROWS + 1])
    has_more = not shows_all and len(rows) > MOST_ROWS
    deleted = Thread.objects.filter(
        pk=request.session.get(UNDO_KEY, 0), owner_id=request.user.pk
    ).exclude(deleted_at=None)
    return {
        "groups": grouped(rows[:MOST_ROWS] if has_more else rows, timezone.localdate()),
        "has_more": has_more,
        "current": current,
        "undo": deleted.first(),
        "edited": SimpleLazyObject(lambda: edited_words(get_language() or "en")),
    }


def composer(
    thread: Thread | None = None, submitted: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the context of the composer."""
    choices = offered_choices()
    return {
        "models": choices,
        "chosen": start_of(choices, thread),
        "prompt": (submitted or {}).get("prompt", ""),
    }
