"""A tool server of the protocol's own SDK, which misbehaves where it is asked to.

Run as `mcpserver.py stdio`, or as `mcpserver.py http PORT`, which prints its port.
"""

import asyncio
import os
import socket
import sys
from collections import defaultdict

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations

server = MCPServer("tests")
READ_ONLY = ToolAnnotations(read_only_hint=True)

hanging = defaultdict[str, asyncio.Event](asyncio.Event)
"""Set for the words of the calls that hang, so that another can wait for one."""


@server.tool(annotations=READ_ONLY)
def echo(word: str) -> str:
    """Says it again."""
    return f"You said {word}"


@server.tool(annotations=READ_ONLY)
def pid() -> str:
    """Tells the process, and the variables that are set in it."""
    return f"{os.getpid()} {' '.join(sorted(os.environ))}"


@server.tool(name="shouts.loudly")
def shouts() -> CallToolResult:
    """Says that it has failed."""
    words = TextContent(type="text", text="No soup today")
    return CallToolResult(content=[words], is_error=True)


@server.tool()
def refuses() -> str:
    """Fails in words of its own."""
    raise ToolError("I do not like it")


@server.tool()
async def hangs(word: str = "") -> str:
    """Does not answer."""
    hanging[word].set()
    await asyncio.sleep(3600)
    return ""


@server.tool(annotations=READ_ONLY)
async def waits() -> str:
    """Does not answer either, and changes nothing."""
    await asyncio.sleep(3600)
    return ""


@server.tool()
async def dies(after: str = "") -> str:
    """Ends the process in the middle of the call, on stdio with a child left behind.

    Where a word is given, it waits before until the call with that word hangs.
    """
    if after:
        await hanging[after].wait()
    if sys.argv[1] == "stdio":
        code = "import time; time.sleep(600)"
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        sys.stderr.write(f"Out of memory in {child.pid} s3cret-4711\n")
        sys.stderr.flush()
    os._exit(3)


@server.tool(annotations=READ_ONLY)
def token(ctx: Context) -> str:
    """Tells the header that the request came with."""
    request = ctx.request_context.request
    return f"<{request.headers.get('authorization') if request else ''}>"


@server.tool(annotations=READ_ONLY)
def rambles() -> CallToolResult:
    """Answers with 3.4 MB."""
    words = TextContent(type="text", text="soup " * 680_000)
    return CallToolResult(content=[words])


@server.tool(annotations=READ_ONLY)
def draws() -> CallToolResult:
    """Answers with an image and a value."""
    image = ImageContent(type="image", data="aGk=", mime_type="image/png")
    return CallToolResult(content=[image], structured_content={"price": 12})


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    import uvicorn

    listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    print(listener.getsockname()[1], flush=True)  # noqa: T201
    app = server.streamable_http_app(json_response="json" in sys.argv)
    config = uvicorn.Config(app, log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
