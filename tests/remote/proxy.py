"""A proxy between the program and a real server, which counts requests and makes them go wrong.

A fault is a function of a request that returns None, or what to do with its answer:

    ("status", 503, {"Retry-After": "1"})   another answer, without a body
    ("cut", 1000)                           1000 bytes of the body, then the connection breaks
    ("slow", 100, 0.01)                     100 bytes every 10 ms
    ("stall", 1000)                         1000 bytes, and then nothing
    ("header", {"ETag": '"other"'})         other headers; None removes one
    ("extra", b"...")                       more bytes than were asked for
"""

import http.client
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Request:
    def __init__(self, number, method, path, headers):
        self.number, self.method, self.path, self.headers = number, method, path, headers
        self.range = None
        spec = headers.get("Range")
        if spec and spec.startswith("bytes="):
            first, last = spec[6:].split("-")
            self.range = (int(first), int(last) + 1)


class Proxy:
    """Forwards to `port`; `url` is its own address."""

    def __init__(self, port, latency=0.0, fault=None, keep_ranges=True, tls=None):
        self.upstream, self.latency, self.fault, self.keep_ranges = port, latency, fault, keep_ranges
        self.lock = threading.Lock()
        self.requests, self.bytes, self.most, self.now = [], 0, 0, 0
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                proxy.handle(self)

            do_HEAD = do_GET

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        scheme = "http"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.port = self.server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def handle(self, client):
        with self.lock:
            request = Request(len(self.requests), client.command, client.path, client.headers)
            self.requests.append(request)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            if self.latency:
                time.sleep(self.latency)
            self.answer(client, request)
        except (BrokenPipeError, ConnectionResetError):
            client.close_connection = True
        finally:
            with self.lock:
                self.now -= 1

    def answer(self, client, request):
        fault = (self.fault(request) if self.fault else None) or (None,)
        if fault[0] == "status":
            client.send_response(fault[1])
            for name, value in (fault[2] if len(fault) > 2 else {}).items():
                client.send_header(name, value)
            client.send_header("Content-Length", "0")
            client.end_headers()
            return
        headers = {name: value for name, value in request.headers.items() if name.lower() != "connection"}
        if not self.keep_ranges:
            headers = {name: value for name, value in headers.items() if name.lower() != "range"}
        upstream = http.client.HTTPConnection("127.0.0.1", self.upstream)
        upstream.request(request.method, request.path, headers=headers)
        answer = upstream.getresponse()
        body = answer.read()
        upstream.close()
        answered = {name: value for name, value in answer.getheaders()}
        answered.pop("Connection", None)
        answered.pop("Transfer-Encoding", None)
        answered["Content-Length"] = str(len(body))
        if not self.keep_ranges:
            answered.pop("Accept-Ranges", None)
        if fault[0] == "header":
            answered.update(fault[1])
        if fault[0] == "extra":
            answered["Content-Length"] = str(len(body) + len(fault[1]))
            body += fault[1]
        client.send_response(answer.status)
        for name, value in answered.items():
            if value is not None and name not in ("Server", "Date"):
                client.send_header(name, value)
        client.end_headers()
        if request.method == "HEAD":
            return
        sent = len(body)
        if fault[0] == "cut":
            sent = min(sent, fault[1])
            client.wfile.write(body[:sent])
            client.wfile.flush()
            client.connection.shutdown(socket.SHUT_RDWR)
            client.close_connection = True
        elif fault[0] == "stall":
            sent = min(sent, fault[1])
            client.wfile.write(body[:sent])
            client.wfile.flush()
            time.sleep(fault[2] if len(fault) > 2 else 8)
            client.close_connection = True
        elif fault[0] == "slow":
            for start in range(0, len(body), fault[1]):
                client.wfile.write(body[start : start + fault[1]])
                client.wfile.flush()
                time.sleep(fault[2])
        else:
            client.wfile.write(body)
        with self.lock:
            self.bytes += sent
