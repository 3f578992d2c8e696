"""The database: catalogue, conversation, ledger."""

from threads.models.catalogue import Agent, Gateway, LanguageModel, Sentence
from threads.models.conversation import Cell, JournalEntry, Round, Thread
from threads.models.ledger import CallAttempt, KeyHealth, ToolRun, ToolTurn
from threads.models.routes import Route, RouteStep
from threads.models.schedules import Schedule
from threads.models.servers import ToolServer
from threads.models.tools import ToolRule

__all__ = [
    "Agent",
    "CallAttempt",
    "Cell",
    "Gateway",
    "JournalEntry",
    "KeyHealth",
    "LanguageModel",
    "Round",
    "Route",
    "RouteStep",
    "Schedule",
    "Sentence",
    "Thread",
    "ToolRule",
    "ToolRun",
    "ToolServer",
    "ToolTurn",
]
