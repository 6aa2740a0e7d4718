"""The page at /docs: made from the API's own description, without a script, a font or anything else from elsewhere.

The usual viewers are programs of their own that a browser loads from a network that a lab may not have.
"""

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

from lab.control.problems import KINDS

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy: the page is text."""

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.4 ui-monospace, monospace; } pre { background: #8881; padding: .6rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } td, th { border: 1px solid #8884; padding: .2rem .5rem;
text-align: left; vertical-align: top; } h2 { margin-top: 2.2rem; } :root { color-scheme: light dark; }
"""

_PROBLEMS = """Every error is <code>application/problem+json</code> (RFC 9457), with a member <code>fix</code> where one
line mends it."""

Schema = Mapping[str, Any]


def page(schema: Schema) -> str:
    """An HTML page of an OpenAPI description."""
    info = schema["info"]
    parts = [
        f"<h1>{_text(info['title'])} {_text(info['version'])}</h1>",
        *(f"<p>{_text(paragraph)}</p>" for paragraph in info["description"].split("\n\n")),
        '<p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>',
        *_operations(schema),
        "<h1>Bodies</h1>",
        *_bodies(schema["components"]["schemas"]),
        f"<h1>Problems</h1><p>{_PROBLEMS}</p><table>",
        *(f'<tr id="{kind}"><td><code>{kind}</code></td><td>{_text(title)}</td></tr>' for kind, title in KINDS.items()),
        "</table>",
    ]
    head = f'<meta charset="utf-8"><title>{_text(info["title"])}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def _operations(schema: Schema) -> Iterator[str]:
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            yield f"<h2><code>{method.upper()} {_text(path)}</code></h2>"
            yield f"<p>{_text(operation.get('description', ''))}</p>"
            yield from _parameters(operation)
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                yield f"<p>Body: {_kind(body['schema'])}</p>"
                examples = body.get("examples", {}) or body["schema"].get("examples", {})
                for example in examples.values() if isinstance(examples, Mapping) else ():
                    yield f"<pre>{_text(json.dumps(example['value']))}</pre>"
            yield "<table>"
            for status, answer in operation["responses"].items():
                kinds = [_kind(content.get("schema", {})) for content in answer.get("content", {}).values()]
                words = _text(answer["description"])
                yield f"<tr><td>{_text(status)}</td><td>{words}</td><td>{' '.join(kinds)}</td></tr>"
            yield "</table>"


def _parameters(operation: Schema) -> Iterator[str]:
    for one in operation.get("parameters", ()):
        words = _text(one.get("description") or one["schema"].get("description", ""))
        yield f"<p><code>{_text(one['name'])}</code> ({_text(one['in'])}): {_kind(one['schema'])} {words}</p>"


def _bodies(schemas: Schema) -> Iterator[str]:
    for name, body in schemas.items():
        yield f'<h2 id="body-{_text(name)}">{_text(name)}</h2><p>{_text(body.get("description", ""))}</p>'
        if "enum" in body:
            yield f"<p>{_kind(body)}</p>"
        if "properties" in body:
            yield "<table>"
            for member, kind in body["properties"].items():
                words = _text(kind.get("description", ""))
                yield f"<tr><td><code>{_text(member)}</code></td><td>{_kind(kind)}</td><td>{words}</td></tr>"
            yield "</table>"


def _kind(schema: Schema) -> str:
    """A JSON type in a few words."""
    if "$ref" in schema:
        name = _text(schema["$ref"].rpartition("/")[2])
        return f'<a href="#body-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum") or [schema["const"]]
        return ", ".join(f"<code>{_text(str(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return _text(str(schema.get("type", "")))


def _text(words: str) -> str:
    return html.escape(words)
