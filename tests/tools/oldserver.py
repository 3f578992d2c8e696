"""A tool server written by hand, as many are: it knows only the older protocol.

It has one more tool once `learn` was called, and says so.
"""

import json
import sys

tools = ["learn", "refuse", "garble"]
ERRORS = {"refuse": {"code": -32000, "message": "Not today"}}


def say(**message: object) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(number: int, method: str, params: dict[str, str]) -> None:
    """Answer one request."""
    match method, params.get("name", ""):
        case "initialize", _:
            version = params["protocolVersion"]
            about = {"name": "old", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            result = {"protocolVersion": version, "serverInfo": about}
            say(id=number, result=result | {"capabilities": capabilities})
        case "tools/list", _:
            listed = [{"name": t, "inputSchema": {"type": "object"}} for t in tools]
            say(id=number, result={"tools": listed})
        case "tools/call", "learn":
            tools.append("new")
            say(method="notifications/tools/list_changed")
            say(id=number, result={"content": [{"type": "text", "text": "learned"}]})
        case "tools/call", "garble":
            say(id=number, result={"content": "soup"})
        case "tools/call", name:
            say(id=number, error=ERRORS[name])
        case _:
            say(id=number, error={"code": -32601, "message": "Method not found"})


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer(message["id"], message["method"], message.get("params", {}))
