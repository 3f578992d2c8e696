"""Numbers as the viewer's language writes them."""

from collections.abc import Callable
from decimal import Decimal

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from threads.models.totals import Number, Total


def number(count: int) -> str:
    """A count, its thousands kept apart."""
    return number_format(count, force_grouping=True)


def seconds(milliseconds: int) -> str:
    """Milliseconds as seconds, finer below one second."""
    digits = 1 if milliseconds >= 1000 else 2
    return number_format(milliseconds / 1000, digits, force_grouping=True)


def dollars(amount: Decimal) -> str:
    """US dollars to the cent, and of less than one dollar three figures that count."""
    digits = max(2, 2 - amount.adjusted()) if 0 < amount < 1 else 2
    # Noughts at the end of a finer amount tell nothing.
    while digits > 2 and round(amount, digits) == round(amount, digits - 1):
        digits -= 1
    written = number_format(round(amount, digits), digits, force_grouping=True)
    return _("$%(amount)s") % {"amount": written}


def counted(count: int | None) -> str:
    """A count, or that it is unknown: never zero for that (requirement G3)."""
    return _("unknown") if count is None else number(count)


def summed(total: Total[Number], write: Callable[[Number], str]) -> str:
    """A sum as `write` writes it, marked where some part of it is unknown (G3)."""
    if total.known is None:
        return _("unknown")
    written = write(total.known)
    return written if total.is_whole else _("≥ %(amount)s") % {"amount": written}
