"""Where the tools of a call stand in an answer: between what came before and after.

A slot is the same for everybody, as blocks are: an empty section with an id. What
a page shows in it depends on the viewer, and comes by itself.
"""

from threads.rendering.stream import Slot


class ToolBlock(str):
    """The block of one call's tools; templates fill it where they show it."""

    call: int


def tools_slot(cell_id: int, call: int, offset: int) -> Slot:
    """Return the slot of a call; `offset` is how long the cell's text was then."""
    block = ToolBlock(
        f'<section class="tools" id="{tools_id(cell_id, call)}"></section>'
    )
    block.call = call
    return Slot(offset, block)


def tools_id(cell_id: int, call: int) -> str:
    """Name the section that shows the tools of a call."""
    return f"cell-{cell_id}-tools-{call}"
