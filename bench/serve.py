#!/usr/bin/env -S python3 -B
"""Claims about `penumbra serve`, over loopback alone: what HTTP costs, and what it bears.

ViT-B/16 on two threads: pictures a second at 32 clients are 0.95 of `bench encode` at the batch size
that is reached; one client waits for `encode` of one picture and 5 ms, the median for its median and
the slowest of a hundred for its slowest of a hundred. Both in turn, five times, and of the five the
median: what else a shared machine does meets both. A search in a million rows of 512 by a vector is
1.1 of `bench search` for one query. 1,000 open connections that ask now and then for 60 s: no error,
memory the same within 2%. 100,000 malformed requests, to a build with AddressSanitizer where
BENCH_SANITIZED names one: no crash, no stuck worker.

  BENCH_ONLY       parts to run, by comma: encode,search,open,malformed
  BENCH_SIZE       rows in place of a million
  BENCH_SANITIZED  the program of a sanitized build, for the malformed requests
"""
import base64
import http.client
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import benchlib
from benchlib import median

N = int(os.environ.get("BENCH_SIZE", "1000000"))
DIM = 512
ONLY = benchlib.only("encode", "search", "open", "malformed")
N_CLIENTS, SECONDS, ROUNDS = 32, 15, 5
N_OPEN, OPEN_SECONDS = 1000, 60
N_MALFORMED, N_SENDERS = 100000, 8


class Server:
    """A server on a free port, ended by SIGTERM."""

    def __init__(self, *args, program=benchlib.PENUMBRA):
        command = [program, "serve", *map(str, args), "--port", "0", "--threads", str(benchlib.THREADS)]
        self.log = open(os.path.join(benchlib.WORK, "serve.log"), "w+", encoding="utf-8")
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                      env=benchlib.clean_environment(**benchlib.WAITS["sleeping"]))
        line = self.child.stdout.readline()
        found = re.search(r":(\d+)\s*$", line)
        if found is None:
            raise benchlib.CannotMeasure("the server did not start; see " + self.log.name)
        self.port = int(found.group(1))
        for _ in range(6000):
            if self.ask("GET", "/health")[0] == 200:
                return
            time.sleep(0.05)
        raise benchlib.CannotMeasure("the server does not come to be ready")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, method, path, body=None, connection=None):
        c = connection or self.connect()
        c.request(method, path, body)
        r = c.getresponse()
        text = r.read()
        if connection is None:
            c.close()
        return r.status, text

    def metric(self, name):
        text = self.ask("GET", "/metrics")[1].decode()
        return float(re.search("^penumbra_%s (.*)$" % re.escape(name), text, re.M).group(1))

    def memory_kb(self):
        with open("/proc/%d/status" % self.child.pid, encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        status = self.child.wait(120)
        self.log.close()
        return status


def picture_bodies():
    folder = benchlib.pictures()
    urls = ["data:image/png;base64," + base64.b64encode(open(os.path.join(folder, f), "rb").read()).decode()
            for f in sorted(os.listdir(folder))]
    return [json.dumps({"input": u, "encoding_format": "base64"}) for u in urls]


def encode_times(model, batch, seconds):
    """Seconds of a call, the median and of 99 in 100, of `bench encode`."""
    r = benchlib.penumbra("bench", "encode", "--model", model, "--tower", "image", "--batch", batch,
                          "--seconds", seconds, "--json", wait="sleeping").json()
    return r["median_s"], r["p99_s"]


def run_clients(server, bodies, n_clients, seconds):
    """Seconds of every answer, all answers 200; and how long it took."""
    taken, wrong, end = [], [], time.perf_counter() + seconds

    def go_on(k):
        c, i = server.connect(), k
        while time.perf_counter() < end:
            begin = time.perf_counter()
            status, _ = server.ask("POST", "/v1/embeddings", bodies[i % len(bodies)], c)
            taken.append(time.perf_counter() - begin)
            if status != 200:
                wrong.append(status)
            i += n_clients
        c.close()
    threads = [threading.Thread(target=go_on, args=(k,)) for k in range(n_clients)]
    begin = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if wrong:
        raise benchlib.CannotMeasure("answers other than 200: %s" % wrong[:5])
    return sorted(taken), time.perf_counter() - begin


def share(values, q):
    return values[min(len(values) - 1, int(q * len(values)))]


def batch_counts(server):
    return [server.metric("batch_size_count"), server.metric("batch_size_sum")]


def rate_of_clients(server, bodies):
    """Pictures a second of all clients, and the size of their batches."""
    before = batch_counts(server)
    taken, whole = run_clients(server, bodies, N_CLIENTS, SECONDS)
    n_batches, n_rows = (b - a for a, b in zip(before, batch_counts(server)))
    return len(taken) / whole, max(1, round(n_rows / n_batches))


def in_turn(rounds, one, other):
    """(of one, of the other) a round: what else the machine does meets both."""
    return [(one(), other()) for _ in range(rounds)]


def measure_encode(report):
    model, bodies = benchlib.vit_b_16(), picture_bodies()
    server = Server("--model", model, "--max-batch", 32)
    run_clients(server, bodies, N_CLIENTS, 3)
    rounds = []
    for _ in range(ROUNDS):
        rate, batch = rate_of_clients(server, bodies)
        rounds.append((rate, batch / encode_times(model, batch, SECONDS)[0], batch))
    run_clients(server, bodies, 1, 3)
    alone = in_turn(ROUNDS, lambda: run_clients(server, bodies, 1, SECONDS)[0],
                    lambda: encode_times(model, 1, SECONDS))
    server.end()
    of_encode = median([r / e for r, e, _ in rounds])
    p50 = [(share(t, 0.5), e[0]) for t, e in alone]
    p99 = [(share(t, 0.99), e[1]) for t, e in alone]
    print("rounds (server's rate, bench encode's, batch):", ["%.2f %.2f %d" % r for r in rounds])
    print("one client, ms (p50, encode's; p99, encode's):",
          ["%.1f %.1f; %.1f %.1f" % tuple(1000 * v for v in a + b) for a, b in zip(p50, p99)])
    over = [1000 * median([t - e for t, e in pairs]) for pairs in (p50, p99)]
    return [["pictures/s of 32 clients to bench encode's, batches of %d" % median([b for _, _, b in rounds]),
             "%.3f" % of_encode, ">= 0.95", report.verdict(of_encode >= 0.95)],
            ["p50 of one client beyond encode's, ms", "%+.1f" % over[0], "< 5", report.verdict(over[0] < 5)],
            ["p99 of one client beyond encode's, ms", "%+.1f" % over[1], "< 5", report.verdict(over[1] < 5)]]


def wide_set(model, n):
    """n rows of unit means and log-variances that say they are of the model."""
    try:
        import numpy
    except ImportError as e:
        raise benchlib.CannotMeasure("making the rows needs numpy: start this with BENCH_PYTHON's Python") from e
    small = os.path.join(benchlib.WORK, "serve-one.safetensors")
    benchlib.penumbra("embed", "--model", model, "--images", benchlib.pictures(), "--batch-size", 32, "--out", small)
    with open(small, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    told = {k: v for k, v in head["__metadata__"].items() if "ids" not in k}
    width = head["mean"]["shape"][1]

    def make(path):
        arrays = ("mean", "log_var")
        head = {"__metadata__": told}
        for i, name in enumerate(arrays):
            head[name] = {"dtype": "F32", "shape": [n, width], "data_offsets": [4 * n * width * i, 4 * n * width * (i + 1)]}
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        rng = numpy.random.default_rng(1)
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for name in arrays:
                for first in range(0, n, 10000):
                    x = rng.standard_normal((min(10000, n - first), width), dtype=numpy.float32)
                    x = x / numpy.linalg.norm(x, axis=1, keepdims=True) if name == "mean" else -8 + 0.5 * x
                    f.write(x.astype("<f4").tobytes())
        with open(re.sub(r"\.new$", "", path).replace(".safetensors", ".ids.jsonl"), "w", encoding="ascii") as f:
            f.writelines('{"id":"%d"}\n' % i for i in range(n))
    return benchlib.once(os.path.join(benchlib.WORK, "serve-%d.safetensors" % n), make), width


def measure_search(report):
    model = benchlib.vit_b_16()
    path, width = wide_set(model, N)
    server = Server("--model", model, "--images", path, "--calibration", "none")
    rng, taken, c = random.Random(2), [], server.connect()
    for i in range(60):
        x = [rng.gauss(0, 1) for _ in range(width)]
        length = sum(v * v for v in x) ** 0.5
        body = json.dumps({"vector": [v / length for v in x], "log_var": [-8.0] * width, "k": 10})
        begin = time.perf_counter()
        status, text = server.ask("POST", "/v1/search", body, c)
        taken.append(time.perf_counter() - begin)
        if status != 200 or len(json.loads(text)["hits"]) != 10:
            raise benchlib.CannotMeasure("a search was answered by %d: %s" % (status, text[:300]))
    server.end()
    r = benchlib.penumbra("bench", "search", "--n", N, "--dim", width, "--queries", 1, "--seconds", 5, "--json",
                          wait="sleeping").json()
    seconds = r["median_s"]
    p50 = median(taken[10:])
    return [["search in %d x %d, p50, ms; bench search %.1f" % (N, width, 1000 * seconds),
             "%.1f (%.2f)" % (1000 * p50, p50 / seconds), "< 1.10", report.verdict(p50 < 1.1 * seconds)]]


def measure_open(report):
    server = Server("--model", benchlib.small_model(), "--timeout", 120, "--max-connections", 2000)
    sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(N_OPEN)]
    request = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    n_asked = n_wrong = 0
    rounds, begin, first = 0, time.perf_counter(), None
    while time.perf_counter() < begin + OPEN_SECONDS or rounds < 2:
        for s in sockets:
            s.sendall(request)
        for s in sockets:
            text = s.recv(4096)
            n_asked += 1
            n_wrong += not text.startswith(b"HTTP/1.1 200")
        rounds += 1
        if first is None:
            first = server.memory_kb()
        time.sleep(1)
    grown = server.memory_kb() / first - 1
    held = server.metric("connections")
    for s in sockets:
        s.close()
    status = server.end()
    return [["%d connections, %d s, %d requests: errors" % (N_OPEN, OPEN_SECONDS, n_asked), "%d" % (n_wrong + (status != 0)),
             "0", report.verdict(n_wrong == 0 and status == 0 and held >= N_OPEN)],
            ["their memory at the end against the first round", "%+.2f%%" % (100 * grown), "within 2%",
             report.verdict(abs(grown) <= 0.02)]]


def malformed(rng):
    """Bytes that are nearly a request."""
    paths = ["/", "/v1/embeddings", "/v1/search", "/v1/browse", "/v1/classify", "/v1/similarity", "/v1/collections",
             "/v1/collections/a/add", "/v1/collections/a/thumbnails/1", "/knn-service", "/metadata", "/%ff%00%zz", "/" + "a" * 5000]
    bodies = ['{"input":"a"', '{"text":', '[]', '{"input":{"image":"data:image/png;base64,AAAA"}}', '{"k":1e99}', '\0' * 40,
              '{"input":[' + '[' * 200, '"' + 'x' * 2000, '{"ids":[1,2,{}]}']
    body = rng.choice(bodies)
    head = "%s %s %s\r\n" % (rng.choice(["POST", "POST", "GET", "PUT", "G\0T", ""]), rng.choice(paths),
                             rng.choice(["HTTP/1.1", "HTTP/1.1", "HTTP/9", ""]))
    length = rng.choice([str(len(body)), str(len(body)), "0", "-1", "99999999999999999999", "x"])
    framing = rng.choice(["Content-Length: %s\r\n" % length, "Transfer-Encoding: chunked\r\n", ""])
    if framing.startswith("Transfer"):
        body = rng.choice(["%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), "zz\r\n", "ffffffffffffffff\r\na"])
    text = bytearray((head + rng.choice(["Host: localhost\r\n", "Host: \r\n", ""]) + framing + "\r\n" + body).encode("latin-1"))
    for _ in range(rng.choice([0, 0, 1, 4])):
        text[rng.randrange(len(text))] = rng.randrange(256)
    return bytes(text[:rng.choice([len(text), len(text), rng.randrange(len(text) + 1)])])


def measure_malformed(report):
    program = os.environ.get("BENCH_SANITIZED", benchlib.PENUMBRA)
    server = Server("--model", benchlib.small_model(), "--timeout", 5, "--max-body", 1, program=program)
    n_sent = [0] * N_SENDERS

    def send(k):
        rng = random.Random(k)
        while n_sent[k] < N_MALFORMED // N_SENDERS and server.child.poll() is None:
            n_sent[k] += 1
            try:
                with socket.create_connection(("127.0.0.1", server.port), timeout=0.02) as s:
                    s.sendall(malformed(rng))
                    if rng.random() < 0.7:
                        s.shutdown(socket.SHUT_WR)
                    s.recv(4096)
            except OSError:
                pass
    threads = [threading.Thread(target=send, args=(k,)) for k in range(N_SENDERS)]
    begin = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    seconds = time.perf_counter() - begin
    time.sleep(6)  # what is half sent is ended by the clock
    is_alive = server.child.poll() is None
    works = is_alive and server.ask("POST", "/v1/embeddings", '{"input":"a star"}')[0] == 200
    stuck = server.metric("requests_processing") + server.metric("requests_waiting") if works else -1
    status = server.end() if is_alive else server.child.returncode
    kind = "a sanitized build" if program != benchlib.PENUMBRA else "the Release build"
    return [["%d malformed requests in %.0f s to %s" % (sum(n_sent), seconds, kind),
             "works: %s, stuck: %d, ended with %d" % (works, stuck, status), "yes, 0, 0",
             report.verdict(sum(n_sent) >= N_MALFORMED and works and stuck == 0 and status == 0)]]


def run():
    report = benchlib.Report("serve", "`penumbra serve` over loopback")
    parts = {"encode": measure_encode, "search": measure_search, "open": measure_open, "malformed": measure_malformed}
    rows = []
    for name in ONLY:
        rows += parts[name](report)
    report.say()
    report.table(["figure", "measured", "target", ""], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
