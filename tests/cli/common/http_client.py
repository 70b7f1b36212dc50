"""Requests of the tests of `penumbra serve`, to the address in $url."""
import http.client
import json
import os
import socket
import struct
import base64
import threading
import time
import urllib.parse

where = urllib.parse.urlparse(os.environ["url"])


def ask(method, path, body=None, headers=None, timeout=60):
    """Status, headers and text of the answer; a body that is no text is sent as JSON."""
    if body is not None and not isinstance(body, (str, bytes)):
        body = json.dumps(body)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def get(path, status=200, **more):
    return want(status, "GET", path, **more)


def post(path, body, status=200, **more):
    return want(status, "POST", path, body=body, **more)


def want(status, method, path, says=None, **more):
    """The JSON of an answer with the status that is wanted, or its text."""
    code, headers, text = ask(method, path, **more)
    assert code == status, (method, path, more.get("body"), code, text[:500])
    if says is not None:
        assert says in text, (says, text)
    if not headers.get("Content-Type", "").startswith("application/json"):
        return text
    value = json.loads(text)
    if status >= 400:
        error = value["error"]
        assert set(error) == {"code", "message", "type", "param"} and error["code"] == status, value
    return value


def raw(text, timeout=10):
    """What comes back for these bytes until the other end closes or the time is over."""
    with socket.create_connection((where.hostname, where.port), timeout=timeout) as s:
        s.sendall(text if isinstance(text, bytes) else text.encode())
        parts = []
        try:
            while part := s.recv(65536):
                parts.append(part)
        except (socket.timeout, ConnectionResetError):
            pass
        return b"".join(parts)


def metric(name):
    """The number behind a name with its labels in /metrics; None where it is not there."""
    for line in get("/metrics").splitlines():
        if line.startswith(name + " "):
            return float(line.rsplit(" ", 1)[1])
    return None
