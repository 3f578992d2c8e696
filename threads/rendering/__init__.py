"""Text and cells as HTML: one renderer, on the server, for page and socket."""

from threads.rendering.cells import (
    CellView,
    Shared,
    Versions,
    cell_html,
    composer_state_html,
    foot_html,
    thread_row_html,
    tools_html,
    versions_of,
    view_of,
)
from threads.rendering.code import language_name
from threads.rendering.slots import tools_slot
from threads.rendering.stream import MarkdownStream, Slot, render_text
from threads.rendering.tools import ToolsOf

__all__ = [
    "CellView",
    "MarkdownStream",
    "Shared",
    "Slot",
    "ToolsOf",
    "Versions",
    "cell_html",
    "composer_state_html",
    "foot_html",
    "language_name",
    "render_text",
    "thread_row_html",
    "tools_html",
    "tools_slot",
    "versions_of",
    "view_of",
]
