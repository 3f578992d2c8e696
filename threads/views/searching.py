"""Finding threads by what is written in them."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from threads.models import Thread
from threads.models.conversation import words_of
from threads.rendering.cells import with_states
from threads.views.listing import sidebar

MOST_RESULTS = 50


@login_required
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Show the threads whose title or text contains the words asked for."""
    query = words_of(request.GET.get("q", ""))
    own = Thread.objects.of(request.user)
    found = own.containing(query) if query else own.none()
    rows = with_states(found).order_by("-updated_at")[: MOST_RESULTS + 1]
    context = {
        **sidebar(request),
        "query": query,
        "results": rows[:MOST_RESULTS],
        "is_cut": len(rows) > MOST_RESULTS,
        "most": MOST_RESULTS,
    }
    return render(request, "threads/search.html", context)
