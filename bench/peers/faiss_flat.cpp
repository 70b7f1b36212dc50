// Times FAISS's IndexFlatIP and penumbra's exact search on the same unit vectors, in turn.
//
//   faiss_flat N DIM K THREADS ROUNDS QUERIES...
//
// Both search by the inner product of unit vectors (measure "mean"). For each number of queries
// every round runs FAISS once and ours once; the first round is not counted. Prints one JSON object
// with the medians, and the share of hits on which both agree. Rows are sums of bytes of a
// counter-based hash, so that the set needs no file.
#include <faiss/IndexFlat.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "faiss_peer.hpp"
#include "penumbra/search.h"

namespace {

void fill(uint64_t seed, size_t n, size_t dim, float *out) {
#pragma omp parallel for
    for (size_t i = 0; i < n; i++)
        direction(seed, i, dim, out + i * dim);
}

// Paths of the BLAS libraries this process has loaded.
std::string blas() {
    std::ifstream maps("/proc/self/maps");
    std::string line, found;
    while (std::getline(maps, line)) {
        size_t at = line.find('/');
        if (at == std::string::npos || line.find("blas") == std::string::npos)
            continue;
        std::string path = line.substr(at);
        if (found.find(path) == std::string::npos)
            found += (found.empty() ? "" : " ") + path;
    }
    return found;
}

pnb_gaussians points(size_t n, size_t dim, const float *mean) {
    pnb_gaussians rows = {};
    rows.n = n;
    rows.dim = dim;
    rows.mean = mean;
    return rows;
}

// Hits of both sides that are the same item at the same place.
double agreement(const pnb_hits &ours, const std::vector<int64_t> &theirs) {
    size_t n = theirs.size(), same = 0;
    for (size_t i = 0; i < n; i++)
        same += ours.index[i] == theirs[i];
    return static_cast<double>(same) / static_cast<double>(n);
}

void run_case(const faiss::IndexFlatIP &flat, const pnb_index *index, const pnb_ctx *ctx,
              const std::vector<float> &queries, size_t n_queries, size_t k, int rounds,
              bool is_last) {
    size_t dim = static_cast<size_t>(flat.d);
    std::vector<double> our_s, their_s;
    std::vector<float> distance(n_queries * k);
    std::vector<int64_t> label(n_queries * k);
    pnb_gaussians q = points(n_queries, dim, queries.data());
    double same = 0;
    for (int round = 0; round <= rounds; round++) {
        double start = now();
        flat.search(static_cast<int64_t>(n_queries), queries.data(), static_cast<int64_t>(k),
                    distance.data(), label.data());
        double middle = now();
        pnb_hits hits;
        pnb_error err = PNB_ERROR_INIT;
        check(pnb_index_search(index, ctx, &q, k, &hits, &err), err);
        double end = now();
        same = agreement(hits, label);
        pnb_hits_reset(&hits);
        if (round == 0)
            continue;
        their_s.push_back(middle - start);
        our_s.push_back(end - middle);
    }
    std::printf("{\"queries\": %zu, \"ours_s\": %.6f, \"faiss_s\": %.6f, \"same\": %.6f}%s",
                n_queries, median(our_s), median(their_s), same, is_last ? "" : ", ");
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 7) {
        std::fprintf(stderr, "usage: faiss_flat N DIM K THREADS ROUNDS QUERIES...\n");
        return 2;
    }
    size_t n = std::strtoul(argv[1], nullptr, 10), dim = std::strtoul(argv[2], nullptr, 10);
    size_t k = std::strtoul(argv[3], nullptr, 10), most = 0;
    int threads = std::atoi(argv[4]), rounds = std::atoi(argv[5]);
    for (int i = 6; i < argc; i++)
        most = std::max<size_t>(most, std::strtoul(argv[i], nullptr, 10));
    omp_set_num_threads(threads);
    std::vector<float> rows(n * dim), queries(most * dim);
    fill(1, n, dim, rows.data());
    fill(2, most, dim, queries.data());
    faiss::IndexFlatIP flat(static_cast<int64_t>(dim));
    flat.add(static_cast<int64_t>(n), rows.data());
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx *ctx = nullptr;
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    ctx_opts.n_threads = threads;
    check(pnb_ctx_create(&ctx, &ctx_opts, &err), err);
    pnb_gaussians gallery = points(n, dim, rows.data());
    pnb_search_opts opts = pnb_search_opts_default();
    opts.measure = PNB_MEASURE_MEAN;
    pnb_index *index = nullptr;
    check(pnb_index_create(&index, ctx, &gallery, &opts, &err), err);
    std::printf("{\"faiss\": \"%d.%d.%d\", \"blas\": \"%s\", \"cases\": [", FAISS_VERSION_MAJOR,
                FAISS_VERSION_MINOR, FAISS_VERSION_PATCH, blas().c_str());
    for (int i = 6; i < argc; i++)
        run_case(flat, index, ctx, queries, std::strtoul(argv[i], nullptr, 10), k, rounds,
                 i + 1 == argc);
    std::printf("]}\n");
    pnb_index_free(index);
    pnb_ctx_free(ctx);
    return 0;
}
