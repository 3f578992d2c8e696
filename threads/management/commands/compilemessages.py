"""`manage.py compilemessages` without gettext's own tools."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from threads.provision import compile_catalogues


class Command(BaseCommand):
    """Compiles the translations that are newer than their compiled form."""

    help = "Compiles the translation catalogues (needs no gettext tools)."
    requires_system_checks = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Compile every language."""
        count = sum(compile_catalogues(root) for root in settings.LOCALE_PATHS)
        self.stdout.write(f"{count} catalogues compiled")
