"""A running host for the tests: the built binary with the default model and no policies."""

import json
import pathlib
import subprocess
import threading

import openai
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ROOT / "target" / "release" / "jackfield"


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    (folder / "jackfield.toml").write_text(
        '[[keys]]\nkey = "sk-test-key-1"\ntenant = "one"\n', encoding="utf-8"
    )
    command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    command += ["--config", folder / "jackfield.toml", "--state", folder / "state"]
    host = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield listening(host)
    finally:
        host.terminate()
        assert host.wait(timeout=60) == 0


def listening(host):
    """The API's address, from the log; whatever is logged later is read and dropped."""
    lines = []
    for line in host.stderr:
        lines.append(line)
        fields = json.loads(line).get("fields", {}) if line.startswith("{") else {}
        if fields.get("message") == "listening":
            threading.Thread(target=lambda: [None for _ in host.stderr], daemon=True).start()
            return fields["api"]
    raise AssertionError("the host did not start:\n" + "".join(lines))


@pytest.fixture(scope="session")
def base_url(address):
    return f"http://{address}/v1"


@pytest.fixture(scope="session")
def client(base_url):
    return openai.OpenAI(base_url=base_url, api_key="sk-test-key-1", max_retries=0)


@pytest.fixture
def async_client(base_url):
    return openai.AsyncOpenAI(base_url=base_url, api_key="sk-test-key-1", max_retries=0)
