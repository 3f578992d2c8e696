"""What tests are spared, in their own process; sites in other processes are not."""

from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.color import no_style
from django.db import connection
from django.test import TransactionTestCase
from servestatic.middleware import ServeStaticMiddleware


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Hash once, flush without making anew, look for static files once."""
    patch.setattr(PBKDF2PasswordHasher, "iterations", 1)
    patch.setattr(TransactionTestCase, "_fixture_teardown", empty_tables)
    _find_static_files_once(patch)


def empty_tables(_case: TransactionTestCase) -> None:
    """Only empty the tables after a test that commits.

    Django also makes the rows of its models' names and permissions anew each time,
    which takes longer than the rest; here they stay.
    """
    stay = {ContentType._meta.db_table, Permission._meta.db_table}
    tables = connection.introspection.django_table_names(
        only_existing=True, include_views=False
    )
    connection.ops.execute_sql_flush(
        connection.ops.sql_flush(no_style(), [*{*tables} - stay])
    )


def _find_static_files_once(patch: pytest.MonkeyPatch) -> None:
    """Not again for each client of each test: that is 75 ms each time."""
    find, found = ServeStaticMiddleware.add_files_from_finders, dict[str, Any]()

    def find_once(middleware: ServeStaticMiddleware) -> None:
        if not found:
            find(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    patch.setattr(ServeStaticMiddleware, "add_files_from_finders", find_once)
