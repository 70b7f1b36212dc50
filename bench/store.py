#!/usr/bin/env -S python3 -B
"""Claims about collections, in SQLite and in a Postgres of the bench's own (Debian's postgresql-15).

100,000 ready embeddings of 512 values are added in under 60 s to SQLite and 30 s to Postgres; one of
1,000,000 rows (of 16 values: nothing is read of a row) is opened in under 0.2 s, as `collection info`
does, with the start of the process. Writers are killed with SIGKILL at random moments and started
again: every row is there, each once, and `verify` finds nothing.

  BENCH_ONLY   parts to run, by comma: add,open,kills
  BENCH_KILLS  writers to kill in each of the two   20
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import benchlib

ONLY = benchlib.only("add", "open", "kills")
N_KILLS = int(os.environ.get("BENCH_KILLS", "20"))
N_ADD, N_OPEN, N_KILLED = 100000, 1000000, 20000
ADD_LIMIT = {"SQLite": 60, "Postgres": 30}
OPEN_LIMIT = 0.2
SCRIPT = os.path.join(benchlib.ROOT, "tests", "cli", "common", "postgres.sh")


class Postgres:
    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="pnb-bench-")
        os.chmod(self.base, 0o711)
        env = dict(os.environ, PNB_TEST_FSYNC="on")
        done = subprocess.run(["bash", SCRIPT, "start", self.base + "/pg"], capture_output=True, text=True, env=env,
                              check=False)
        if done.returncode != 0:
            shutil.rmtree(self.base, ignore_errors=True)
            raise benchlib.CannotMeasure(done.stdout + done.stderr)
        self.address = done.stdout.splitlines()[0]

    def end(self):
        subprocess.run(["bash", SCRIPT, "stop", self.base + "/pg"], check=False)
        shutil.rmtree(self.base, ignore_errors=True)


def rows(n, width):
    """A set of n Gaussians with ids."""
    def make(path):
        try:
            import numpy
        except ImportError as e:
            raise benchlib.CannotMeasure("making the rows needs numpy: start this with BENCH_PYTHON's Python") from e
        head = {"__metadata__": {"format_version": "1", "family": "gaussian_diag", "modality": "image"}}
        for i, name in enumerate(("mean", "log_var")):
            head[name] = {"dtype": "F32", "shape": [n, width], "data_offsets": [4 * n * width * i, 4 * n * width * (i + 1)]}
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        rng = numpy.random.default_rng(3)
        os.makedirs(path)
        with open(os.path.join(path, "s.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for name in ("mean", "log_var"):
                for first in range(0, n, 10000):
                    x = rng.standard_normal((min(10000, n - first), width), dtype=numpy.float32)
                    x = x / numpy.linalg.norm(x, axis=1, keepdims=True) if name == "mean" else -8 + 0.5 * x
                    f.write(x.astype("<f4").tobytes())
        with open(os.path.join(path, "s.ids.jsonl"), "w", encoding="ascii") as f:
            f.writelines('{"id":"%d"}\n' % i for i in range(n))
    return os.path.join(benchlib.once(os.path.join(benchlib.WORK, "rows-%d-%d" % (n, width)), make), "s.safetensors")


class Places:
    """Collections of the bench, in a folder that goes with them."""

    def __init__(self, postgres):
        self.folder = tempfile.mkdtemp(prefix="store-", dir=benchlib.WORK)
        self.stores = {"SQLite": [], "Postgres": ["--store", postgres.address]}
        self.n = 0

    def create(self, kind):
        self.n += 1
        path = os.path.join(self.folder, "c%d" % self.n)
        benchlib.penumbra("collection", "create", path, *self.stores[kind])
        return path

    def end(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def count(path):
    return benchlib.penumbra("collection", "info", path, "--json").json()["n_rows"]


def measure_add(report, places):
    found = []
    for kind, limit in ADD_LIMIT.items():
        path = places.create(kind)
        seconds = benchlib.penumbra("collection", "add", path, "--set", rows(N_ADD, 512)).seconds
        is_all = count(path) == N_ADD
        found.append(["%d embeddings of 512 into %s, s" % (N_ADD, kind), "%.1f" % seconds, "< %d" % limit,
                      report.verdict(is_all and seconds < limit, "%s: seconds to add 100,000" % kind, seconds, "< %d" % limit)])
    return found


def measure_open(report, places):
    found = []
    for kind in ADD_LIMIT:
        path = places.create(kind)
        benchlib.penumbra("collection", "add", path, "--set", rows(N_OPEN, 16))
        seconds = benchlib.median([benchlib.penumbra("collection", "info", path).seconds for _ in range(7)])
        found.append(["%d rows in %s opened, s" % (N_OPEN, kind), "%.3f" % seconds, "< %.1f" % OPEN_LIMIT,
                      report.verdict(seconds < OPEN_LIMIT, "%s: seconds to open 1,000,000 rows" % kind, seconds, "< 0.2")])
    return found


def measure_kills(report, places):
    rng, found, source = random.Random(7), [], rows(N_KILLED, 16)
    for kind in ADD_LIMIT:
        path, n_killed, n_before, lost = places.create(kind), 0, 0, 0
        for _ in range(N_KILLS):
            child = subprocess.Popen([benchlib.PENUMBRA, "collection", "add", path, "--set", source, "--wait", "20", "-q"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0.02, 0.6))
            child.kill()
            n_killed += child.wait() != 0
            n = count(path)
            lost += n < n_before or n not in (0, N_KILLED)
            if n == N_KILLED: # from nothing again
                benchlib.penumbra("collection", "verify", path)
                path, n = places.create(kind), 0
            n_before = n
        benchlib.penumbra("collection", "add", path, "--set", source, "--wait", 20)
        benchlib.penumbra("collection", "verify", path)
        is_good = lost == 0 and count(path) == N_KILLED
        found.append(["%s: %d of %d writers killed; lost or twice" % (kind, n_killed, N_KILLS), "%d" % lost, "0",
                      report.verdict(is_good and n_killed > 0)])
    return found


def run():
    report = benchlib.Report("store", "collections in SQLite and Postgres")
    parts = {"add": measure_add, "open": measure_open, "kills": measure_kills}
    postgres = Postgres()
    places = Places(postgres)
    table = []
    try:
        for name in ONLY:
            table += parts[name](report, places)
    finally:
        places.end()
        postgres.end()
    report.say()
    report.table(["figure", "measured", "target", ""], table)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
