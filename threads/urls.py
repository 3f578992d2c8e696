"""Addresses of the application."""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path
from django.views.i18n import set_language

from threads.views import (
    accounts,
    again,
    conversation,
    deciding,
    home,
    managing,
    searching,
    site,
)

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("threads/<int:thread_id>/", conversation.thread, name="thread"),
    path("threads/<int:thread_id>/send/", conversation.send, name="send"),
    path("threads/<int:thread_id>/stop/", conversation.stop, name="stop"),
    path(
        "threads/<int:thread_id>/cells/<int:cell_id>/text/",
        conversation.cell_text,
        name="cell-text",
    ),
    path(
        "threads/<int:thread_id>/cells/<int:cell_id>/again/",
        again.again,
        name="cell-again",
    ),
    path(
        "threads/<int:thread_id>/cells/<int:cell_id>/change/",
        again.change,
        name="cell-change",
    ),
    path(
        "threads/<int:thread_id>/cells/<int:cell_id>/choose/",
        again.choose,
        name="cell-choose",
    ),
    path(
        "threads/<int:thread_id>/cells/<int:cell_id>/details/",
        again.details,
        name="cell-details",
    ),
    path(
        "threads/<int:thread_id>/tools/<int:run_id>/",
        deciding.decide,
        name="tool-decide",
    ),
    path("threads/<int:thread_id>/rename/", managing.rename, name="rename"),
    path("threads/<int:thread_id>/delete/", managing.delete, name="delete"),
    path("threads/<int:thread_id>/restore/", managing.restore, name="restore"),
    path("dismiss-undo/", managing.dismiss_undo, name="dismiss-undo"),
    path("search/", searching.search, name="search"),
    path("sign-in/", accounts.SignIn.as_view(), name="sign-in"),
    path(
        "sign-in/<str:uidb64>/<str:token>/", accounts.sign_in_link, name="sign-in-link"
    ),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("password/", accounts.password, name="password"),
    path("sign-up/", accounts.sign_up, name="sign-up"),
    path("set-language/", set_language, name="set-language"),
    path("set-theme/", site.set_theme, name="set-theme"),
    path("healthz", site.healthz, name="healthz"),
    path("readyz", site.readyz, name="readyz"),
]
