"""A stored text that the database cannot give any more, as a damaged file has it."""

import pytest
from django.db import connection

from threads.models import Cell


def spoil(cell: Cell, text: str) -> None:
    """Store `text` with a byte that is no UTF-8: reading fails, the error quotes it."""
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite stores such a text")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE threads_cell SET text = CAST(%s AS TEXT) WHERE id = %s",
            [text.encode() + b"\xff", cell.pk],
        )
