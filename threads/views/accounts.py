"""Signing in, up and out, and the one-time link of a first run."""

from typing import Any, cast

from django.conf import settings
from django.contrib.auth import get_user_model, login, update_session_auth_hash
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlsafe_base64_decode
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from threads.forms import SignInForm, SignUpForm

BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignIn(auth_views.LoginView):
    """Signing in with name and password; django-axes counts the failures."""

    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Tell the page whether people may make accounts."""
        return super().get_context_data(**kwargs, sign_up_open=settings.SIGN_UP_OPEN)


@sensitive_post_parameters()
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Set a password, or change it; the session goes on.

    Who came by a one-time link has none yet and is not asked for the old one.
    """
    user = cast("User", request.user)
    form_class = PasswordChangeForm if user.has_usable_password() else SetPasswordForm
    form = form_class(user, request.POST if request.method == "POST" else None)
    is_set = request.method == "POST" and form.is_valid()
    if is_set:
        form.save()
        update_session_auth_hash(request, user)
    return render(
        request,
        "registration/password.html",
        {"form": form, "is_set": is_set},
        status=422 if form.errors else 200,
    )


@sensitive_post_parameters("password1", "password2")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    """Make an account and sign in, where the operator allows it.

    Raises:
        Http404: this site is not open.
    """
    if not settings.SIGN_UP_OPEN:
        raise Http404
    form = SignUpForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        login(request, form.save(), backend=BACKEND)
        return redirect("home")
    return render(
        request,
        "registration/sign_up.html",
        {"form": form},
        status=422 if form.errors else 200,
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, uidb64: str, token: str) -> HttpResponse:
    """Sign in by a one-time link.

    Looking at it changes nothing, so a preview does not use it up: the page has a
    button that posts. Signing in moves `last_login`, which ends the token.
    """
    user = user_of(uidb64)
    is_valid = (
        user is not None
        and user.is_active
        and default_token_generator.check_token(user, token)
    )
    if request.method == "POST" and is_valid and user is not None:
        login(request, user, backend=BACKEND)
        return redirect("home")
    return render(
        request,
        "registration/sign_in_link.html",
        {"is_valid": is_valid, "person": user},
        status=200 if is_valid else 410,
    )


def user_of(uidb64: str) -> Any:
    """Return the user a link names, or None."""
    users = get_user_model()._default_manager
    try:
        return users.filter(pk=urlsafe_base64_decode(uidb64).decode()).first()
    except (ValueError, OverflowError):
        return None
