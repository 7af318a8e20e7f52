"""HTTP before mistral.rs's Python package: as much of the OpenAI API as `jackfield bench` asks for.

    mistralrs_server.py FILE.gguf PORT STREAMS
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from mistralrs import ChatCompletionRequest, Runner, Which

FILE, PORT, STREAMS = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
RUNNER = Runner(Which.GGUF(str(FILE.parent), FILE.name), max_seqs=STREAMS)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = json.dumps({"data": [{"id": "default"}]}).encode()
        known = self.path in ("/health", "/v1/models")
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        # Only chats are streamed, so raw text becomes a message in the model's template; usage counts what it adds.
        request = ChatCompletionRequest(
            messages=asked.get("prompt") or asked["messages"], model="default", max_tokens=asked["max_tokens"],
            temperature=asked.get("temperature"), ignore_eos=asked.get("ignore_eos", False), stream=True)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in RUNNER.send_chat_completion_request(request):
            choices = [{"index": choice.index, "delta": {"content": choice.delta.content},
                        "finish_reason": choice.finish_reason} for choice in chunk.choices]
            usage = chunk.usage and {"prompt_tokens": chunk.usage.prompt_tokens,
                                     "completion_tokens": chunk.usage.completion_tokens}
            self.event(json.dumps({"choices": choices, "usage": usage}))
        self.event("[DONE]")
        self.close_connection = True

    def event(self, data):
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
