"""Registers the tools that every site has. None of them changes anything."""

from threads.tools import arithmetic, clock, reading, searching
from threads.tools.paging import LIMIT, SHORTENED
from threads.tools.registry import FunctionTool, register

register(
    FunctionTool(
        name="current_time",
        description="Tells the current date and time in a time zone.",
        parameters={
            "type": "object",
            "properties": {
                "timezone": {
                    "type": "string",
                    "description": "An IANA name such as Europe/Berlin. Default: UTC.",
                }
            },
            "additionalProperties": False,
        },
        function=clock.current_time,
    )
)
register(
    FunctionTool(
        name="calculator",
        description="Calculates an arithmetic expression exactly.",
        parameters={
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": (
                        "Numbers, + - * / // % **, parentheses, and the functions "
                        "sqrt, abs, round, min, max. Example: (17 + 4) * 2.5"
                    ),
                }
            },
            "required": ["expression"],
            "additionalProperties": False,
        },
        function=arithmetic.calculate,
    )
)
register(
    FunctionTool(
        name="search_threads",
        description=(
            "Searches the person's own threads for words in titles and messages. "
            "Answers the threads last used first, each with its newest message that "
            "has the words and an excerpt of it. … marks what is left out."
        ),
        parameters={
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": (
                        "Found as it is written, in upper or lower case; one telling "
                        "word finds more than several."
                    ),
                },
                "limit": LIMIT,
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        function=searching.search_threads,
        takes_context=True,
    )
)
register(
    FunctionTool(
        name="read_thread",
        description=(
            "Reads messages of one of the person's own threads, newest first. To go "
            f"on, ask for what stands before the last cell you got. {SHORTENED}"
        ),
        parameters={
            "type": "object",
            "properties": {
                "thread": {
                    "type": "integer",
                    "description": "Number of the thread. Default: this thread.",
                },
                "before": {
                    "type": "integer",
                    "description": "Number of a cell: only what stands before it.",
                },
                "limit": LIMIT,
            },
            "additionalProperties": False,
        },
        function=reading.read_thread,
        takes_context=True,
    )
)
register(
    FunctionTool(
        name="cell_versions",
        description=(
            "Lists the versions of a message or an answer, newest first: how each "
            f"ended and how it begins; 'current' is the one that is shown. {SHORTENED}"
        ),
        parameters={
            "type": "object",
            "properties": {
                "cell": {"type": "integer", "description": "Number of a cell."},
                "limit": LIMIT,
            },
            "required": ["cell"],
            "additionalProperties": False,
        },
        function=reading.cell_versions,
        takes_context=True,
    )
)
