"""What the benches share: our program and the PyTorch peer as child processes, tables, verdicts.

Environment of every bench:
  PENUMBRA       the program                                 build/penumbra
  BENCH_WORK     models and data sets made for the benches   build/bench-work
  BENCH_PYTHON   a Python with torch and numpy               /usr/bin/python3 (python3-torch)
  BENCH_THREADS  threads of both sides                       2
  BENCH_ROUNDS   rounds, in place of each bench's own number
  BENCH_ONLY     encode.py: only the cases whose title begins so ("image, batch 1")
  BENCH_ORT      encode.py: a folder with npm's onnxruntime-node, which is then compared too
  BENCH_NODE     the Node.js that runs it                    node
  BENCH_GPYTORCH adapt.py: folders of gpytorch and linear_operator, joined by colons
  BENCH_FAISS    search.py: a folder with an unpacked libfaiss-dev
  BENCH_SIZE     search.py: rows in place of a million
  BENCH_TRAINED  pcme_learning.py: measures the models of an earlier run in BENCH_WORK, trained for as many steps
  BENCH_RUN      name of the run that results belong to; tools/run-benches sets it
  BENCH_COMMIT   commit of sources that were copied without their repository
A bench prints its table, also into bench/results/<name>.txt when called with --save, with the figures
of README in <name>.json beside it, and exits 0 when every target is met, 1 when one is not, 2 when it
could not measure. Every result names the commit that was measured.
"""
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PENUMBRA = os.path.abspath(os.environ.get("PENUMBRA", os.path.join(ROOT, "build", "penumbra")))
WORK = os.path.abspath(os.environ.get("BENCH_WORK", os.path.join(ROOT, "build", "bench-work")))
PYTHON = os.environ.get("BENCH_PYTHON", "/usr/bin/python3")
THREADS = int(os.environ.get("BENCH_THREADS", "2"))
PEERS = os.path.join(ROOT, "bench", "peers")
LIBRARIES = "/usr/lib/%s-linux-gnu" % platform.machine()
OPENMP_BLAS = os.path.join(LIBRARIES, "openblas-openmp")
PTHREAD_BLAS = os.environ.get("BENCH_PTHREAD_BLAS", os.path.join(LIBRARIES, "openblas-pthread"))

# How idle OpenMP threads wait. libgomp spins by default; beside another thread pool, or on a
# machine with other work, sleeping is faster. Both sides are given the faster of the two, and it is
# named.
WAITS = {"sleeping": {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}, "spinning": {}}


class CannotMeasure(Exception):
    pass


class TooSlow(Exception):
    """A child process was ended because it took longer than it was given."""


def refuse(message):
    print("%s: %s" % (os.path.basename(sys.argv[0]), message), file=sys.stderr)
    sys.exit(2)


def rounds(default):
    """BENCH_ROUNDS, or this bench's own number."""
    text = os.environ.get("BENCH_ROUNDS", str(default))
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        refuse("BENCH_ROUNDS=%s: a whole number from 1 on" % text)
    return int(text)


def only(*parts):
    """The parts that BENCH_ONLY names, by comma, or all; a name that is none would measure nothing."""
    named = os.environ.get("BENCH_ONLY", ",".join(parts)).split(",")
    unknown = [name for name in named if name not in parts]
    if unknown:
        refuse("BENCH_ONLY=%s: its parts are %s" % (",".join(unknown), ", ".join(parts)))
    return named


def clean_environment(**extra):
    """The caller's environment without anything that steers OpenMP or BLAS, plus `extra`."""
    kept = {k: v for k, v in os.environ.items()
            if not re.match(r"(OMP|GOMP|OPENBLAS|MKL|KMP|GOTO)_|LD_(LIBRARY_PATH|PRELOAD)$", k)}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **extra}


class Finished:
    """What a child process did; peak memory and seconds are of that process alone."""

    def __init__(self, command, env, limit_s=None):
        start = time.perf_counter()
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        try:
            self.out, self.log = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as e:
            child.kill()
            child.communicate()
            raise TooSlow() from e
        self.seconds = time.perf_counter() - start
        self.status = child.returncode
        if self.status != 0:
            raise CannotMeasure("%s\nexit status %d\n%s" % (" ".join(command), self.status,
                                                            self.log[-2000:]))

    def json(self):
        return json.loads(self.out)


def penumbra(*args, wait="spinning", limit_s=None):
    """Runs our program, with --threads; its result is JSON where the caller asks for it."""
    if not os.access(PENUMBRA, os.X_OK):
        raise CannotMeasure("%s is missing: make build, or set PENUMBRA" % PENUMBRA)
    command = [PENUMBRA, *map(str, args), "--threads", str(THREADS)]
    return Finished(command, clean_environment(**WAITS[wait]), limit_s)


def peer(script, *args, wait="sleeping", blas=OPENMP_BLAS, limit_s=None):
    """Runs a script of bench/peers on the named OpenBLAS folder."""
    command = [PYTHON, os.path.join(PEERS, script), *map(str, args), "--threads", str(THREADS)]
    env = clean_environment(OMP_NUM_THREADS=str(THREADS), OPENBLAS_NUM_THREADS=str(THREADS),
                            LD_LIBRARY_PATH=blas, **WAITS[wait])
    return Finished(command, env, limit_s)


def check_peer():
    try:
        subprocess.run([PYTHON, "-c", "import torch, numpy"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise CannotMeasure("the peer needs Debian's python3-torch: apt-get install python3-torch "
                            "(or set BENCH_PYTHON)") from e


# ---- FAISS ----

def faiss_folder(header):
    """The folder with include and lib, None where FAISS is not there."""
    for folder in (os.path.join(os.environ.get("BENCH_FAISS", "/nowhere"), "usr"), "/usr"):
        if os.path.exists(os.path.join(folder, "include", "faiss", header)):
            return folder
    return None


def faiss_program(folder, name):
    """Builds peers/NAME.cpp beside FAISS and this build's own library."""
    build = os.path.dirname(PENUMBRA)
    if os.path.exists(os.path.join(build, "CMakeCache.txt")):
        subprocess.run(["cmake", "--build", build, "--target", "penumbra_shared"], check=True,
                       stdout=subprocess.DEVNULL)
    path = os.path.join(build, "bench", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    command = ["g++", "-std=c++17", "-O2", "-fopenmp", "-I", os.path.join(folder, "include"), "-I",
               os.path.join(ROOT, "include"), os.path.join(PEERS, name + ".cpp"), "-o", path, "-L",
               os.path.join(folder, "lib", platform.machine() + "-linux-gnu"), "-lfaiss", "-L", build,
               "-lpenumbra", "-Wl,-rpath," + build, "-llapack", "-lblas"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as e:
        raise CannotMeasure("g++ is missing: apt-get install g++") from e
    except subprocess.CalledProcessError as e:
        raise CannotMeasure("%s\n%s" % (" ".join(command), e.stderr[-2000:])) from e
    return path


def median(values):
    values = sorted(values)
    n = len(values)
    return values[n // 2] if n % 2 else 0.5 * (values[n // 2 - 1] + values[n // 2])


def once(path, make):
    """Makes `path` by make(temporary path) unless it is there; it appears whole."""
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = path + ".new"
        subprocess.run(["rm", "-rf", temporary], check=True)
        make(temporary)
        os.rename(temporary, path)
    return path


# ---- models and data of the benches ----

def shapes(n=5000):
    return once(os.path.join(WORK, "shapes-v3-%d" % n),
                lambda path: penumbra("data", "shapes", "--n", n, "--out", path))


def pictures(n=64):
    """A folder of n PNG files."""
    def make(path):
        os.makedirs(path)
        with tarfile.open(os.path.join(shapes(), "test", "00000.tar")) as tar:
            for m in [m for m in tar if m.name.endswith(".png")][:n]:
                with open(os.path.join(path, m.name), "wb") as f:
                    f.write(tar.extractfile(m).read())
    return once(os.path.join(WORK, "pictures-%d" % n), make)


def word_tokenizer(train_data, name, kind="word", vocabulary=2000):
    """A tokenizer.json learned from the training captions and the templates' words."""
    def make(path):
        templates = path + ".templates.txt"
        with open(templates, "w", encoding="utf-8") as f:
            f.write("a picture of\nan image of\nan icon of\nthis shows\nin a picture\n"
                    "a small picture of\n")
        penumbra("tokenizer", "train", "--captions", train_data, templates, "--kind", kind,
                 "--vocab-size", vocabulary, "--out", path)
        os.remove(templates)
    return once(os.path.join(WORK, name), make)


def vit_b_16():
    """ViT-B/16 of the published shape (vocabulary 32,100) with random weights."""
    tokenizer = word_tokenizer(os.path.join(shapes(), "train"), "shapes.tokenizer.json")

    def make(path):
        penumbra("init", "--config", "ViT-B-16", "--seed", 1, "--out", path)
        subprocess.run(["cp", tokenizer, os.path.join(path, "tokenizer.json")], check=True)
    return once(os.path.join(WORK, "ViT-B-16"), make)


def small_model():
    """64 px, patch 8, width 192, 6 + 4 layers, embedding 192, context 16, vocabulary 1,500."""
    tokenizer = word_tokenizer(os.path.join(shapes(), "train"), "shapes.tokenizer.json")
    override = {"embed_dim": 192, "vision_cfg": {"image_size": 64, "width": 192, "layers": 6},
                "text_cfg": {"width": 192, "heads": 3, "layers": 4}}

    def make(path):
        penumbra("init", "--config", "tiny", "--override", json.dumps(override), "--seed", 1,
                 "--out", path)
        subprocess.run(["cp", tokenizer, os.path.join(path, "tokenizer.json")], check=True)
    return once(os.path.join(WORK, "small"), make)


# ---- reports ----

UNITS = [("amx_tile", "AMX"), ("avx512_bf16", "AVX512-BF16"), ("avx512_vnni", "VNNI"),
         ("avx512f", "AVX-512"), ("avx2", "AVX2")]


def cpu_name():
    """The processor and its vector units: makers give several generations one name."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        lines = [line.split(":", 1) for line in f if ":" in line]
    about = {name.strip(): value.strip() for name, value in lines}
    flags = about.get("flags", "").split()
    units = [word for flag, word in UNITS if flag in flags]
    return about.get("model name", platform.machine()) + (" (%s)" % ", ".join(units) if units else "")


def share_of_others(seconds=2.0):
    """Share of all cores that other programs use right now; the load average remembers the bench
    before, so it only stands in the report."""
    def used():
        with open("/proc/stat", encoding="ascii") as f:
            words = [int(w) for w in f.readline().split()[1:9]]
        return sum(words) - words[3] - words[4], sum(words)
    busy, total = used()
    time.sleep(seconds)
    busy_after, total_after = used()
    return (busy_after - busy) / max(total_after - total, 1)


def load_average():
    return os.getloadavg()[0]


def git(*args):
    """What git says, or "" where there is no repository."""
    done = subprocess.run(["git", "-C", ROOT, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit():
    """The commit of the sources; "-dirty" where what is measured was changed since. Who copied
    sources away from their repository tells theirs by BENCH_COMMIT."""
    if os.environ.get("BENCH_COMMIT"):
        return os.environ["BENCH_COMMIT"]
    changed = git("status", "--porcelain", "--", "src", "include", "cli", "cmake", "bench/*.py",
                  "bench/*.c", "bench/peers")
    return (git("rev-parse", "HEAD")[:12] or "unknown") + ("-dirty" if changed else "")


class Report:
    """Prints as it goes, remembers verdicts, writes bench/results/<name>.txt when asked to.

    is_timed: the figures are times, which other work on the machine spoils.
    """

    def __init__(self, name, title, is_timed=True):
        self.name, self.lines, self.n_missed, self.n_met = name, [], 0, 0
        self.figures = {}
        self.origin = {"commit": commit(), "date": time.strftime("%Y-%m-%d %H:%M")}
        self.origin["run"] = os.environ.get("BENCH_RUN", self.origin["date"])
        self.say("== %s ==" % title)
        self.say("command: bench/%s" % " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]))
        self.say("machine: %s, %d of %d cores, load %.1f at the start, %s" % (
            cpu_name(), THREADS, os.cpu_count(), load_average(), time.strftime("%Y-%m-%d %H:%M")))
        self.say("commit: %s, run %s" % (self.origin["commit"], self.origin["run"]))
        self.busy = is_timed and share_of_others() > 0.1
        if self.busy:
            self.say("NOTE: the machine is doing other work; these figures are no claim.")

    def say(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def verdict(self, is_met, key=None, value=None, target=None):
        """A key makes it one of the figures that tools/readme-table reads."""
        if key is not None:
            self.figures[key] = {"value": value, "target": target, "met": bool(is_met)}
        self.n_met += is_met
        self.n_missed += not is_met
        return "met" if is_met else "NOT MET"

    def table(self, head, rows):
        """Columns as wide as their widest cell, the first left, the others right."""
        cells = [head, *rows]
        widths = [max(len(str(r[i])) for r in cells) for i in range(len(head))]
        for r in cells:
            self.say("  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w)
                               for i, (c, w) in enumerate(zip(r, widths))).rstrip())

    def finish(self):
        self.say("%d targets met, %d not met%s" % (
            self.n_met, self.n_missed, "; load %.1f at the end" % load_average()))
        if "--save" in sys.argv:
            folder = os.path.join(ROOT, "bench", "results")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, self.name + ".txt"), "w", encoding="utf-8") as f:
                f.write("\n".join(self.lines) + "\n")
            with open(os.path.join(folder, self.name + ".json"), "w", encoding="utf-8") as f:
                json.dump({"bench": self.name, **self.origin, "machine": cpu_name(),
                           "cores": THREADS, "busy": self.busy, "figures": self.figures}, f,
                          indent=1)
                f.write("\n")
        return 0 if self.n_missed == 0 else 1


def main(run, own_options=False):
    """A bench's exit code. Without options of its own it knows --save, and --freeze FOLDER where it
    says so; one with `own_options` reads the command line itself."""
    doc = sys.modules["__main__"].__doc__ or ""
    known = ["--save"] + (["--freeze"] if "--freeze" in doc else [])
    if not own_options and ("-h" in sys.argv[1:] or "--help" in sys.argv[1:]):
        print(doc.strip() + "\n\noptions: " + " ".join("[%s]" % o for o in known))
        return 0
    unknown = [a for a in sys.argv[1:] if a.startswith("-") and a not in known]
    if unknown and not own_options:
        print("%s: no option %s" % (os.path.basename(sys.argv[0]), unknown[0]), file=sys.stderr)
        return 2
    try:
        return run()
    except CannotMeasure as e:
        print("%s: %s" % (os.path.basename(sys.argv[0]), e), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
