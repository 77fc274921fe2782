"""The MCP server: `evokey mcp`. A memory as tools and resources of an agent, over stdio or HTTP.

server.py puts it together; tools.py has the tools, which call Memory's verbs; caller.py says who calls; documents.py
offers documents as resources. Keys, limits and the audit log are those of the service (serve/).
"""
