#!/usr/bin/env -S python3 -B
"""Claims about approximate search on a million rows of 512 values, top 10, by csd.

HNSW and IVF beside FAISS itself, which walks the same graph or cells in one process: queries a second
at least 0.9 of FAISS's own where its recall@10 is ours or more; HNSW's recall@10 by true csd at least
0.99. A scan of one byte a number for one query: at most 0.35 of the exact scan's time, recall@10 at
least 0.999 after its candidates were scored again.

Rows are sums of 24 directions and a little of their own (`penumbra bench search --factors 24`), as the
embeddings of a model vary in few ways: directions that are anywhere have no neighbours to find.
Building takes FAISS an hour for a graph of a million on two cores: what was built stays in BENCH_ANN,
and a run without it builds it.

  BENCH_SIZE   rows in place of a million
  BENCH_ONLY   parts to run, by comma: hnsw,ivf,int8
  BENCH_ANN    folder for indexes, 2.4 GB each   build/bench-work/ann
  BENCH_FAISS  a folder with an unpacked libfaiss-dev, where it is not installed
"""
import os
import sys

import benchlib

N = int(os.environ.get("BENCH_SIZE", "1000000"))
DIM, K, FACTORS, QUERIES = 512, 10, 24, 4000
ROUNDS = benchlib.rounds(2)
ONLY = benchlib.only("hnsw", "ivf", "int8")
FILES = os.path.abspath(os.environ.get("BENCH_ANN", os.path.join(benchlib.WORK, "ann")))
RECALL, SHARE_OF_FAISS = 0.99, 0.9
INT8_SHARE, INT8_RECALL = 0.35, 0.999


# ---- beside FAISS ----

def peer_program():
    folder = benchlib.faiss_folder("IndexHNSW.h")
    if folder is None:
        raise benchlib.CannotMeasure("libfaiss-dev is not installed: apt-get install libfaiss-dev g++ "
                                     "(or set BENCH_FAISS to a folder where the package is unpacked)")
    return benchlib.faiss_program(folder, "faiss_ann")


def measure(program, kind):
    """The better of two ways of waiting for each side."""
    os.makedirs(FILES, exist_ok=True)
    path = os.path.join(FILES, "%d-%d.%s" % (N, FACTORS, kind))
    command = [program, kind, path, N, DIM, FACTORS, K, benchlib.THREADS, ROUNDS, QUERIES]
    runs = [benchlib.Finished([str(c) for c in command],
                              benchlib.clean_environment(OMP_NUM_THREADS=str(benchlib.THREADS),
                                                         LD_LIBRARY_PATH=benchlib.OPENMP_BLAS, **wait)).json()
            for wait in benchlib.WAITS.values()]
    built = path + ".seconds"
    if runs[0]["build_s"] >= 0:
        with open(built, "w", encoding="ascii") as f:
            f.write("%.0f" % runs[0]["build_s"])
    seconds = open(built, encoding="ascii").read() if os.path.exists(built) else "not known"
    best = {way: {side: max(r[way][side] for r in runs) for side in ("ours", "faiss")}
            for way in ("together", "alone")}
    return runs[0], best, seconds


def faiss_rows(report, kinds):
    rows = []
    for kind in kinds:
        r, best, seconds = measure(peer_program(), kind)
        report.say("%s, FAISS %s: built in %s s, %.0f bytes a vector; recall %.4f of rows held out at building; "
                   "effort %d (ours), %d (FAISS)" % (kind, r["faiss"], seconds, r["bytes_a_row"],
                                                     r["recall_of_rows"], r["effort"], r["faiss_effort"]))
        if kind == "hnsw":
            rows.append(["hnsw: recall@10 by csd of %d queries" % QUERIES, "%.4f (standard error %.4f)" % (r["recall"], r["recall_se"]),
                         "FAISS %.4f" % r["faiss_recall"], "", ">= %.2f" % RECALL,
                         report.verdict(r["recall"] >= RECALL, "hnsw: recall@10", r["recall"], ">= 0.99")])
        for way, words in (("together", "%d queries at once" % QUERIES), ("alone", "one by one")):
            ratio = best[way]["ours"] / best[way]["faiss"]
            rows.append(["%s: queries/s, %s" % (kind, words), "%.0f" % best[way]["ours"],
                         "FAISS %.0f" % best[way]["faiss"], "%.3f" % ratio, ">= %.1f" % SHARE_OF_FAISS,
                         report.verdict(ratio >= SHARE_OF_FAISS, "%s, %s: rate to FAISS" % (kind, way), ratio,
                                        ">= 0.9")])
    return rows


# ---- one byte a number ----

def search(index):
    args = ["bench", "search", "--n", N, "--dim", DIM, "--queries", 1, "--k", K, "--index", index,
            "--factors", FACTORS, "--seconds", 3, "--repeats", 3, "--json"]
    return min((benchlib.penumbra(*args, wait=w).json() for w in benchlib.WAITS), key=lambda r: r["median_s"])


def recall_of_many():
    return benchlib.penumbra("bench", "search", "--n", N, "--dim", DIM, "--queries", 200, "--k", K, "--index",
                             "int8", "--factors", FACTORS, "--seconds", 0, "--repeats", 1, "--json").json()["recall"]


def int8_rows(report):
    flat, int8, recall = search("flat"), search("int8"), recall_of_many()
    ratio = int8["median_s"] / flat["median_s"]
    report.say("int8: prepared in %.1f s, %.0f bytes a vector beside the rows" % (int8["prepare_s"],
                                                                                  int8["bytes_a_row"]))
    return [["int8, one query: ms", "%.1f" % (1000 * int8["median_s"]), "exact %.1f" % (1000 * flat["median_s"]),
             "%.3f" % ratio, "<= %.2f" % INT8_SHARE,
             report.verdict(ratio <= INT8_SHARE, "int8: time to the exact scan", ratio, "<= 0.35")],
            ["int8: recall@10 of 200 queries", "%.4f" % recall, "", "", ">= %.3f" % INT8_RECALL,
             report.verdict(recall >= INT8_RECALL, "int8: recall@10", recall, ">= 0.999")]]


def run():
    report = benchlib.Report("ann", "approximate search, %d x %d, top %d" % (N, DIM, K))
    rows = faiss_rows(report, [kind for kind in ("hnsw", "ivf") if kind in ONLY])
    if "int8" in ONLY:
        rows += int8_rows(report)
    report.say()
    report.table(["figure", "ours", "beside it", "ratio", "target", ""], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
