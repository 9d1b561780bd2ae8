"""Writes the two tables of all methods: `<root>/messages/services.py` and `<root>/rpc/convert/services.py`."""

from __future__ import annotations

import textwrap

from layout import heading, imports
from schema import File, Method


def render_methods(files: list[File]) -> str:
    """`METHODS`, in the order of the files and of the methods in them."""
    root, methods = files[0].root, _all(files)
    return (
        heading("Every method of every service.", f"{root}/v1")
        + "\n"
        + imports(f"{root}.messages", [name for m in methods for name in (m.request, m.response)])
        + "from quorumlog.messages.method import Method\n\n"
        + "METHODS: tuple[Method, ...] = (\n"
        + "".join(_method(method) for method in methods)
        + ")\n"
    )


def _method(method: Method) -> str:
    return (
        f"    Method(service={method.service!r}, name={method.name!r}, "
        f"request={method.request.python}, response={method.response.python}, "
        f"client_streaming={method.client_streaming}, server_streaming={method.server_streaming}, "
        f"doc={_text(method.doc)}),\n"
    )


def _text(doc: str) -> str:
    """The documentation as one text, split into literals that fit on a line."""
    lines = textwrap.wrap(" ".join(doc.split()), 100)
    pieces = [line + " " for line in lines[:-1]] + lines[-1:]
    return "(" + "\n".join(repr(piece) for piece in pieces) + ")" if lines else repr("")


def render_codecs(files: list[File]) -> str:
    """`CODECS`, by request type."""
    root, methods = files[0].root, _all(files)
    return (
        heading("Encoders and decoders of every method's messages.", f"{root}/v1")
        + "\n"
        + imports(f"{root}.messages", [m.request for m in methods])
        + "from quorumlog.rpc.convert.codec import Codec\n"
        + imports(f"{root}.rpc.convert", [n for m in methods for n in (m.request, m.response)], "encode_", "decode_")
        + "\nCODECS: dict[type, Codec] = {\n"
        + "".join(dict.fromkeys(_codec(method) for method in methods))  # two methods may have the same messages
        + "}\n"
    )


def _codec(method: Method) -> str:
    request, response = method.request.python, method.response.python
    return f"    {request}: Codec(encode_{request}, decode_{request}, encode_{response}, decode_{response}),\n"


def _all(files: list[File]) -> list[Method]:
    return [method for file in files for method in file.methods]
