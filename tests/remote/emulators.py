"""Stores that run on this machine, as `gs://`, `az://` and `s3://` reach them.

What each one needs: how it is started, how a file is put there, and what the environment of the program says.
`url` is where requests go: the emulator, or a proxy before it.

Of Google Cloud Storage the XML interface is used, which is that of S3: moto answers it in full.
gcp-storage-emulator answers reads alone, and tells no version, which the proxy adds.
"""

import base64
import email.utils
import hashlib
import hmac
import http.client
import socket
import subprocess
import time
from urllib.parse import quote

# the account of every Azurite, by its documents
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def wait(port):
    for _ in range(300):
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


class Emulator:
    """A store, which a process of its own answers for, or one that answers for another store too."""

    # what the emulator does not tell; whether folders can be listed, and requests with another key are refused
    headers, lists, judges = {}, True, False

    def __init__(self, *command):
        self.process = None
        if command:
            self.port = free_port()
            self.process = subprocess.Popen([*command, *self.words()], **QUIET)

    def request(self, method, path, body=b"", headers={}):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        told = answer.read()
        assert answer.status in (200, 201), (path, answer.status, told)

    def make(self, bucket):
        self.request("PUT", f"/{bucket}")

    def put(self, bucket, key, body):
        self.request("PUT", f"/{bucket}/{quote(key)}", body)


class S3(Emulator):
    scheme, signature, hint = "s3", "AWS4-HMAC", "AWS_SECRET_ACCESS_KEY"

    def words(self):
        return ["-H", "127.0.0.1", "-p", str(self.port)]

    def env(self, url):
        keys = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "SECRET"}
        return {**keys, "AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1"}


class GcsOverS3(Emulator):
    scheme, signature, hint = "gs", "Bearer SECRET", "GOOGLE_APPLICATION_CREDENTIALS"

    def __init__(self, s3):
        super().__init__()
        self.port = s3.port

    def env(self, url):
        return {"GOOGLE_BASE_URL": url, "GOOGLE_BEARER_TOKEN": "SECRET"}


class Gcs(Emulator):
    scheme, signature, hint, env = "gs", GcsOverS3.signature, GcsOverS3.hint, GcsOverS3.env
    headers = {"ETag": '"1"', "Last-Modified": "Sun, 22 Nov 2026 02:54:10 GMT"}
    lists = False

    def words(self):
        return ["start", "--port", str(self.port), "--in-memory", "--quiet"]

    def make(self, bucket):
        body = b'{"name": "%s"}' % bucket.encode()
        self.request("POST", "/storage/v1/b?project=test", body, {"Content-Type": "application/json"})

    def put(self, bucket, key, body):
        self.request("POST", f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(key, safe='')}", body)


class Azure(Emulator):
    scheme, signature, hint = "az", f"SharedKey {ACCOUNT}:", "AZURE_STORAGE_ACCOUNT_KEY"
    judges = True

    def words(self):
        return ["--blobPort", str(self.port), "--inMemoryPersistence", "--silent", "--disableTelemetry"]

    def signed(self, path, query, headers, body):
        """A request with the signature of the shared key."""
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06", **headers}
        resource = f"/{ACCOUNT}/{ACCOUNT}{path}" + (f"\n{query.replace('=', ':')}" if query else "")
        named = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
        text = f"PUT\n\n\n{len(body) or ''}" + "\n" * 9 + named + resource
        signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
        self.request("PUT", f"/{ACCOUNT}{path}" + (f"?{query}" if query else ""), body, headers)

    def make(self, bucket):
        self.signed(f"/{bucket}", "restype=container", {}, b"")

    def put(self, bucket, key, body):
        self.signed(f"/{bucket}/{quote(key)}", "", {"x-ms-blob-type": "BlockBlob"}, body)

    def env(self, url, key=KEY):
        account = {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": key}
        return {**account, "AZURE_STORAGE_ENDPOINT": f"{url}/{ACCOUNT}", "AZURE_ALLOW_HTTP": "true"}
