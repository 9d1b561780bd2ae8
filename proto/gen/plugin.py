"""The protoc plugin: a CodeGeneratorRequest on stdin, the generated modules in a CodeGeneratorResponse on stdout."""

from __future__ import annotations

import sys

import converters_out
import dataclasses_out
import services_out
from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
from schema import SchemaError, read_schema


def generate(request: CodeGeneratorRequest) -> CodeGeneratorResponse:
    """All modules of the requested files. An unsupported schema is returned as protoc's `error`."""
    response = CodeGeneratorResponse(supported_features=CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL)
    try:
        for path, content in _modules(request):
            response.file.add(name=path, content=content)
    except SchemaError as error:
        response.error = str(error)
    return response


def _modules(request: CodeGeneratorRequest) -> list[tuple[str, str]]:
    files = read_schema(request.proto_file, request.file_to_generate)
    modules = []
    for file in files:
        if not (file.messages or file.enums):
            continue
        modules.append((f"{file.root}/messages/{file.stem}.py", dataclasses_out.render(file)))
        modules.append((f"{file.root}/rpc/convert/{file.stem}.py", converters_out.render(file)))
    if any(file.methods for file in files):
        root = files[0].root
        modules.append((f"{root}/messages/services.py", services_out.render_methods(files)))
        modules.append((f"{root}/rpc/convert/services.py", services_out.render_codecs(files)))
    return modules


if __name__ == "__main__":
    answer = generate(CodeGeneratorRequest.FromString(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(answer.SerializeToString(deterministic=True))
