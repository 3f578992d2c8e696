"""`manage.py serve`: everything a first run needs, then Daphne (design section 9)."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from threads import conf, localmodel, provision
from threads.rounds import engine, sweep
from threads.tools.mcp import health

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Command(BaseCommand):
    """Prepares the site and serves it; may be run again at any time."""

    help = "Prepares what is missing, then serves the site."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options of design section 9."""
        parser.add_argument("--host", default="127.0.0.1", metavar="H")
        parser.add_argument("--port", default=8000, type=int, metavar="N")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Prepare, tell the address, and serve until a signal ends it."""
        host, port = options["host"], options["port"]
        require_free(host, port)
        if host not in LOOPBACK and host not in settings.ALLOWED_HOSTS:
            settings.ALLOWED_HOSTS.append(host)
        self._prepare()
        health.check_untried()
        local = self._start_local_model()
        try:
            run(host, port, ready=partial(self._announce, host, port))
        finally:
            if local is not None:
                local.stop()

    def _prepare(self) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        for root in settings.LOCALE_PATHS:
            provision.compile_catalogues(root)
        provision.load_catalogue()
        provision.follow_environment()
        added = provision.discover_models()
        if added:
            self.stdout.write(f"The gateway offers {added} models.")
        ended = sweep.end_lost_rounds(timezone.now())
        if ended:
            self.stdout.write(
                f"Ended, since their server stopped: {len(ended)} rounds."
            )

    def _start_local_model(self) -> localmodel.LocalModel | None:
        model = localmodel.weights()
        if model is None or conf.gateway_configured():
            provision.withdraw_local_model()
            return None
        server = localmodel.LocalModel(model)
        try:
            provision.offer_local_model(server.start())
        except OSError as error:
            self.stderr.write(f"The local model is left out: {error}.")
            provision.withdraw_local_model()
            return None
        return server

    def _announce(self, host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{port}"
        if not conf.gateway_configured():
            self.stdout.write("No gateway is configured: the practice gateway answers.")
            self.stdout.write(
                "Set OPENAI_BASE_URL and OPENAI_API_KEY to use a real one."
            )
        operator = provision.operator_without_password()
        if operator is not None:
            self.stdout.write(f"Sign in, once, with {address}{sign_in_path(operator)}")
        self.stdout.write(f"Ready at {address}/ (end with Ctrl+C)")
        self.stdout.flush()


def require_free(host: str, port: int) -> None:
    """Refuse a port that is taken, before anything is prepared."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"Port {port} of {host} cannot be used ({error}). Choose another with --port."
        ) from error


def sign_in_path(user: User) -> str:
    """Return the path of a link that signs this user in, once.

    The token depends on the last sign-in, so the first use ends it.
    """
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    return reverse("sign-in-link", args=[uid, token])


def run(host: str, port: int, *, ready: Callable[[], None]) -> None:
    """Serve until a signal comes; rounds that still run are ended, named.

    `ready` is called once the port is open. House is kept from the beginning, whether
    somebody comes by or not: schedules do not wait for visitors.
    """
    from chatsite.asgi import application

    reactor.addSystemEventTrigger("before", "shutdown", end_rounds)  # type: ignore[arg-type]  # zope interface without self
    # Not before the loop runs.
    reactor.callLater(0, keep_house)  # type: ignore[arg-type]  # as above
    Server(
        application=application,
        endpoints=build_endpoint_description_strings(host=host, port=port),
        signal_handlers=True,
        server_name="chatsite",
        websocket_timeout=-1,
        ready_callable=ready,
    ).run()


def keep_house() -> None:
    """Let this loop look after rounds, and start those that are due by the clock."""
    engine.engine().keep_house()


def end_rounds() -> Deferred[None]:
    """End the rounds of this process before the loop stops."""
    return Deferred.fromFuture(asyncio.ensure_future(engine.shutdown()))
