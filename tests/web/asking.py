"""What the tests of asking again share: addresses, clients, a look at the page."""

from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Locator, Page

from threads.models import Cell


def path(name: str, cell: Cell) -> str:
    """The address of what can be done about a cell."""
    return reverse(f"cell-{name}", args=[cell.thread_id, cell.pk])


def client_of(user: User, **options: Any) -> Client:
    """A client without scripts, signed in."""
    client = Client(**options)
    client.force_login(user)
    return client


def visit(page: Page, cell: Cell) -> None:
    """Open the thread of a cell."""
    page.goto(reverse("thread", args=[cell.thread_id]))


def version(page: Page) -> Locator:
    """Which version of the answer is shown, of how many."""
    return page.locator(".cell-answer .version-number [aria-hidden]")
