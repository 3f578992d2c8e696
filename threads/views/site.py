"""The site itself: its health, and the look a person chose."""

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

THEMES = ("light", "dark")
THEME_COOKIE = "theme"
YEAR_SECONDS = 365 * 24 * 3600


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Tell that the process answers; touches nothing else."""
    return HttpResponse("ok", content_type="text/plain")


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Tell whether requests can be served: database reachable, migrations applied."""
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return HttpResponse(
            "database unreachable", content_type="text/plain", status=503
        )
    if pending:
        return HttpResponse("migrations pending", content_type="text/plain", status=503)
    return HttpResponse("ok", content_type="text/plain")


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or the system's choice in a cookie that the server reads."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(
        target, {request.get_host()}, require_https=request.is_secure()
    ):
        target = settings.LOGIN_REDIRECT_URL
    response = redirect(target)
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE,
            theme,
            max_age=YEAR_SECONDS,
            samesite="Lax",
            httponly=True,
            secure=request.is_secure(),
        )
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
    return response
