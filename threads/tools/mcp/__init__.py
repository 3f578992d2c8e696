"""Tools of MCP servers, through the protocol's own SDK."""
