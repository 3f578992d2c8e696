"""The application's registration."""

from django.apps import AppConfig


class ThreadsConfig(AppConfig):
    """Threads, cells and rounds."""

    name = "threads"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks and the tools of every site."""
        from threads import checks  # noqa: F401
        from threads.tools import builtin  # noqa: F401
