"""Registers the tools that every site has."""

from threads.tools import arithmetic, clock
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
