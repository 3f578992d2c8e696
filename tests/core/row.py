"""An error as a gateway words it, and what it is to mean."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """An error as a gateway words it, and what it is to mean."""

    status: int
    error: Mapping[str, object]
    code: str
    case: str = ""


def said(words: str, **more: object) -> dict[str, object]:
    return {"message": words, **more}


def named(code: str, **more: object) -> dict[str, object]:
    return {"message": "Provider returned error", "code": code, **more}


def typed(kind: str, **more: object) -> dict[str, object]:
    return {"message": "Provider returned error", "type": kind, **more}
