"""Settings, read from the environment.

Values that can be wrong are kept as they were given; `threads.conf` turns them
into typed bounds and `threads.checks` reports a wrong one as a system-check
error with a hint, so that a typing mistake never ends in a traceback.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import dj_database_url
import django_stubs_ext
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

# Lets annotations such as ModelForm[Thread] stand in code that runs.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent


UNREADABLE_FLAGS: list[str] = []


def env_flag(name: str, *, default: bool) -> bool:
    """Read a yes/no variable; what is neither is left at its default and reported."""
    value = os.environ.get(name, "").strip().lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    if value:
        UNREADABLE_FLAGS.append(name)
    return default


def env_list(name: str, default: str = "") -> list[str]:
    """Read a comma-separated variable."""
    return [
        part.strip()
        for part in os.environ.get(name, default).split(",")
        if part.strip()
    ]


def persistent_secret(path: Path) -> str:
    """Return the secret in `path`, made on the first run.

    An embedded installation must keep its sessions over a restart although
    nobody has set SECRET_KEY.
    """
    if not path.exists():
        # Written aside and linked into place: nobody reads half a secret, and of
        # two first runs one wins.
        with NamedTemporaryFile("w", dir=path.parent, encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50))
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_text("ascii")


DEBUG = env_flag("DEBUG", default=False)
SECRET_KEY = os.environ.get("SECRET_KEY") or persistent_secret(BASE_DIR / ".secret-key")
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "daphne",
    "modeltranslation",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "csp",
    "django_htmx",
    "heroicons",
    "threads",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "chatsite.urls"
ASGI_APPLICATION = "chatsite.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASE_URL = os.environ.get("DATABASE_URL") or f"sqlite:///{BASE_DIR / 'db.sqlite3'}"
DATABASE_URL_ERROR = ""
try:
    DATABASES = {"default": dict(dj_database_url.parse(DATABASE_URL))}
except ValueError as error:
    DATABASE_URL_ERROR = str(error)
    DATABASES = {"default": dict(dj_database_url.parse("sqlite://:memory:"))}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # One writer at a time is SQLite's rule: readers go on during a write (WAL),
    # a writer takes its lock when it begins (IMMEDIATE) and waits for its turn.
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;",
    }

CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["ip_address", "username"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "registration/locked_out.html"

LANGUAGE_CODE = "en"
LANGUAGES = [
    ("en", _("English")),
    ("de", _("German")),
    ("fr", _("French")),
    ("es", _("Spanish")),
    ("it", _("Italian")),
    ("pt-br", _("Brazilian Portuguese")),
    ("nl", _("Dutch")),
    ("pl", _("Polish")),
    ("uk", _("Ukrainian")),
    ("tr", _("Turkish")),
    ("ja", _("Japanese")),
    ("ko", _("Korean")),
    ("zh-hans", _("Simplified Chinese")),
    ("ar", _("Arabic")),
]
MODELTRANSLATION_FALLBACK_LANGUAGES = ("en",)
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "manifest-src": [SELF],
    },
}
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"

SIGN_UP_OPEN = env_flag("SIGN_UP_OPEN", default=False)

OPENAI_BASE_URL = os.environ.get("OPENAI_BASE_URL", "")
OPENAI_API_KEY = os.environ.get("OPENAI_API_KEY", "")
CHAT_MODEL = os.environ.get("CHAT_MODEL", "")
CHAT_FIRST_DATA_SECONDS = os.environ.get("CHAT_FIRST_DATA_SECONDS", "300")
CHAT_IDLE_SECONDS = os.environ.get("CHAT_IDLE_SECONDS", "120")
CHAT_ROUND_CAP_SECONDS = os.environ.get("CHAT_ROUND_CAP_SECONDS", "1800")
CHAT_CALL_RETRIES = os.environ.get("CHAT_CALL_RETRIES", "2")
CHAT_RETRY_WAITS = os.environ.get("CHAT_RETRY_WAITS", "15,45")
CHAT_RETRY_WINDOW_SECONDS = os.environ.get("CHAT_RETRY_WINDOW_SECONDS", "480")
CHAT_ROUND_ENGINE = os.environ.get("CHAT_ROUND_ENGINE", "")

LOGGING_CONFIG = "chatsite.logs.configure"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "threads": {"level": "INFO"},
        # Django's own handlers would mail whole requests, forms included.
        "django": {"level": "INFO"},
        # At INFO and below these libraries write addresses and, at DEBUG,
        # bodies and parameters; prompts, answers and keys never reach a log (I9).
        "openai": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
        # It quotes addresses and answers at every level; what went wrong with a
        # tool server we say ourselves.
        "mcp": {"level": "CRITICAL"},
        "asyncio": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "django.db.backends": {"level": "WARNING"},
    },
}
