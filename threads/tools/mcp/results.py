"""What a server's tool answered, as a text for the model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def text_of(content: Sequence[Mapping[str, Any]], structured: Any) -> str:
    """Join the texts of a result; what is no text is named in a bracketed line.

    A tool that answers with a value sends it a second time, as JSON for machines:
    it is told where there is no text.
    """
    parts = [_part(block) for block in content]
    if structured is not None and not any(block["type"] == "text" for block in content):
        parts.insert(0, json.dumps(structured, ensure_ascii=False))
    return "\n".join(part for part in parts if part)


def _part(block: Mapping[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "mimeType": mime_type}:
            return f"[Not shown here: {kind}, {mime_type}.]"
        case {"type": "resource", "resource": {"text": str(text), "uri": uri}}:
            return f"[From {uri}:]\n{text}"
        case {"type": "resource", "resource": {"uri": uri}}:
            return f"[Not shown here: the resource {uri}.]"
        case {"type": "resource_link", "uri": uri}:
            return f"[A resource: {uri}]"
        case _:
            return f"[Not shown here: {block.get('type')}.]"
