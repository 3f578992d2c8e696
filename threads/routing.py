"""Addresses of the sockets."""

from channels.routing import URLRouter
from django.urls import path, re_path

from threads.consumers import NowhereConsumer, ThreadConsumer

# Django's types know pages only, the router's know both.
sockets = URLRouter(
    [
        path("ws/threads/<int:thread_id>/", ThreadConsumer.as_asgi()),  # type: ignore[arg-type, list-item]
        re_path("", NowhereConsumer.as_asgi()),  # type: ignore[arg-type, list-item]
    ]
)
