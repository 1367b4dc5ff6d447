"""The examples of docs/service-clients.md run, in their order, against a service that is a process of its own."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from lakelet.protos.message_types import message_class, service_methods
from tests.services.serving import serving
from tests.tidy.sources import REPOSITORY

PAGE = REPOSITORY / "docs" / "service-clients.md"


def examples() -> list[tuple[str, str]]:
    """The language and the text of each example."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [(language, text) for language, text in found if "lakelet serve" not in text]


def run(command: list[str], text: str, folder: Path, **environment: str) -> str:
    around = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **environment}
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=900, env=around, check=False)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def rpc(line: str, address: str) -> Any:
    """What a line of grpcurl does: a message of JSON, sent to a method."""
    words = shlex.split(line)
    body, (service, method) = words[words.index("-d") + 1], words[-1].split("/")
    assert words[:2] == ["grpcurl", "-plaintext"]
    described = next(one for one in service_methods(service) if one.name == method)
    request = json_format.Parse(body, message_class(described.input_type.full_name)())
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class(described.output_type.full_name).FromString,
        )
        return call(request, timeout=900)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
def test_the_examples_run(tmp_path: Path) -> None:
    command = tmp_path / "lakelet"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lakelet "$@"\n')
    command.chmod(0o755)
    answers: dict[str, list[str]] = {}
    with serving(tmp_path, zone="Asia/Kathmandu") as served:
        rpc_address = next(line for line in served.told if line.startswith("gRPC on ")).removeprefix("gRPC on ")
        for language, text in examples():
            ready = text.replace("http://127.0.0.1:8080", served.address).replace("127.0.0.1:50051", rpc_address)
            if language == "python":
                run([sys.executable, "-"], ready, tmp_path, TZ="America/St_Johns")
            elif text.startswith("grpcurl"):
                answers["grpc"] = [json_format.MessageToJson(rpc(one, rpc_address)) for one in ready.splitlines()]
            else:
                kind = "curl" if "curl" in text else "cli"
                answers[kind] = run(["bash", "-eu", "-o", "pipefail", "-s"], ready, tmp_path).splitlines()
    assert sorted(answers) == ["cli", "curl", "grpc"]
    assert any("Di" in line for line in answers["cli"])
    curl = "\n".join(answers["curl"])
    assert json.loads(re.findall(r'\{"result_json":".*?\]"\}', curl)[0])["result_json"] == (
        '[{"kind":"key","n":1},{"kind":"click","n":2}]'
    )
    assert '"deleted":1' in curl
    assert json.loads(json.loads(answers["grpc"][1])["resultJson"]) == [{"n": 1}]
    assert "events" in answers["grpc"][2]
