// Times FAISS's own approximate index and penumbra's on the same rows, in turn.
//
//   faiss_ann hnsw|ivf FILE N DIM FACTORS K THREADS ROUNDS QUERIES
//
// Rows are Gaussians that vary in few ways, as those of `penumbra bench search --factors` do: sums of
// FACTORS directions with normal weights, of about length 1, plus 0.3 of a direction of the row's own,
// at length 1; log-variances are uniform in -8 +- 0.85. Queries are made alike. The truth is an exact
// search by csd.
//
// Penumbra's index is opened from FILE, or built and saved there, which takes its time. FAISS reads
// the graph, or the cells, that lie in the same file behind its first line, so that both sides walk
// the same; it is asked with [mean of the query, 1] and given the least effort with which its recall
// is that of ours, or more. Prints one JSON object.
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/index_io.h>
#include <omp.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "faiss_peer.hpp"
#include "penumbra/search.h"

namespace {

struct Rows {
    size_t n, dim;
    std::vector<float> mean, log_var;
    pnb_gaussians view() const {
        pnb_gaussians rows = {};
        rows.n = n;
        rows.dim = dim;
        rows.mean = mean.data();
        rows.log_var = log_var.data();
        return rows;
    }
};

void fill_row(uint64_t seed, size_t i, const Rows &factors, Rows &rows) {
    float *mean = rows.mean.data() + i * rows.dim;
    double norm = 0;
    direction(seed, i, rows.dim, mean);
    for (size_t d = 0; d < rows.dim; d++)
        mean[d] *= 0.3f;
    for (size_t f = 0; f < factors.n; f++) {
        uint64_t w = mix(mix(seed + 5) + i * factors.n + f);
        int sum = -510; // its spread is 148
        for (int b = 0; b < 4; b++)
            sum += static_cast<int>(w >> (8 * b) & 255);
        float weight = static_cast<float>(sum) / (148 * std::sqrt(static_cast<float>(factors.n)));
        for (size_t d = 0; d < rows.dim; d++)
            mean[d] += weight * factors.mean[f * rows.dim + d];
    }
    for (size_t d = 0; d < rows.dim; d++) {
        norm += static_cast<double>(mean[d]) * mean[d];
        double u = static_cast<double>(mix(mix(seed + 9) + i * rows.dim + d)) * 0x1p-64;
        rows.log_var[i * rows.dim + d] = static_cast<float>(-8 + 1.7 * (u - 0.5));
    }
    for (size_t d = 0; d < rows.dim; d++)
        mean[d] = static_cast<float>(mean[d] / std::sqrt(norm));
}

Rows make(uint64_t seed, size_t n, size_t dim, size_t n_factors) {
    Rows rows = {n, dim, std::vector<float>(n * dim), std::vector<float>(n * dim)};
    Rows factors = {n_factors, dim, std::vector<float>(n_factors * dim), {}};
    for (size_t f = 0; f < n_factors; f++)
        direction(77, f, dim, factors.mean.data() + f * dim);
#pragma omp parallel for
    for (size_t i = 0; i < n; i++)
        fill_row(seed, i, factors, rows);
    return rows;
}

struct Hits {
    std::vector<int64_t> id;
    double seconds;
};

struct Recall {
    double mean, error;  // the standard error over queries, whose hits are missed together
};

// Share of the true hits that are among those found.
Recall recall(const std::vector<int64_t> &truth, const std::vector<int64_t> &found, size_t k) {
    double sum = 0, squares = 0, n = static_cast<double>(truth.size() / k);
    for (size_t q = 0; q + k <= truth.size(); q += k) {
        auto begin = found.begin() + static_cast<std::ptrdiff_t>(q);
        auto end = begin + static_cast<std::ptrdiff_t>(k);
        double share = 0;
        for (size_t i = q; i < q + k; i++)
            share += std::find(begin, end, truth[i]) != end ? 1.0 / static_cast<double>(k) : 0;
        sum += share;
        squares += share * share;
    }
    double mean = sum / n, variance = std::max(squares / n - mean * mean, 0.0);
    return {mean, std::sqrt(variance / n)};
}

struct Case {
    const char *kind, *file;
    size_t k;
    pnb_ctx *ctx;
    pnb_gaussians gallery, queries;
    std::vector<float> asked;  // [query][dim + 1]
    std::vector<int64_t> truth;
};

std::vector<int64_t> ids(pnb_hits &hits) {
    std::vector<int64_t> id(hits.index, hits.index + hits.n_queries * hits.k);
    pnb_hits_reset(&hits);
    return id;
}

// ---- ours ----

pnb_search_opts options(const Case &c) {
    pnb_search_opts opts = pnb_search_opts_default();
    opts.kind = std::strcmp(c.kind, "hnsw") == 0 ? PNB_INDEX_HNSW : PNB_INDEX_IVF;
    opts.k = c.k;
    return opts;
}

pnb_index *open_ours(const Case &c, double &build_s) {
    pnb_search_opts opts = options(c);
    pnb_index *index = nullptr;
    pnb_error err = PNB_ERROR_INIT;
    struct stat about;
    double start = now();
    if (stat(c.file, &about) == 0) {
        check(pnb_index_open(&index, c.ctx, &c.gallery, &opts, c.file, &err), err);
        return index;
    }
    check(pnb_index_create(&index, c.ctx, &c.gallery, &opts, &err), err);
    build_s = now() - start;
    check(pnb_index_save(index, c.ctx, c.file, &err), err);
    return index;
}

Hits ask_ours(const Case &c, const pnb_index *index, size_t each) {
    Hits found;
    double start = now();
    for (size_t q = 0; q < c.queries.n; q += each) {
        pnb_gaussians some = pnb_rows_slice(&c.queries, q, std::min(each, c.queries.n - q));
        pnb_hits hits;
        pnb_error err = PNB_ERROR_INIT;
        check(pnb_index_search(index, c.ctx, &some, c.k, &hits, &err), err);
        std::vector<int64_t> id = ids(hits);
        found.id.insert(found.id.end(), id.begin(), id.end());
    }
    found.seconds = now() - start;
    return found;
}

// ---- FAISS ----

std::unique_ptr<faiss::Index> open_theirs(const Case &c) {
    std::FILE *f = std::fopen(c.file, "rb");
    int byte;
    while ((byte = std::fgetc(f)) != '\n' && byte != EOF) {
    }
    std::unique_ptr<faiss::Index> index(faiss::read_index(f));
    std::fclose(f);
    return index;
}

// The index's own numbers: what parameters of a search say of efSearch has no effect in 1.7.3.
Hits ask_theirs(const Case &c, faiss::Index &index, size_t effort, size_t each) {
    if (auto *graph = dynamic_cast<faiss::IndexHNSW *>(&index))
        graph->hnsw.efSearch = static_cast<int>(effort);
    else
        dynamic_cast<faiss::IndexIVF &>(index).nprobe = effort;
    Hits found = {std::vector<int64_t>(c.queries.n * c.k), 0};
    std::vector<float> product(c.queries.n * c.k);
    double start = now();
    for (size_t q = 0; q < c.queries.n; q += each)
        index.search(static_cast<int64_t>(std::min(each, c.queries.n - q)),
                     c.asked.data() + q * (c.queries.dim + 1), static_cast<int64_t>(c.k),
                     product.data() + q * c.k, found.id.data() + q * c.k);
    found.seconds = now() - start;
    return found;
}

// By doubling, then by halves: more effort finds no less.
size_t least_effort(const Case &c, faiss::Index &index, double wanted, double &reached) {
    auto recall_at = [&](size_t effort) {
        return recall(c.truth, ask_theirs(c, index, effort, c.queries.n).id, c.k).mean;
    };
    size_t below = c.k - 1, enough = c.k;
    while ((reached = recall_at(enough)) < wanted && enough < 20000) {
        below = enough;
        enough *= 2;
    }
    while (enough - below > 1) {
        size_t middle = below + (enough - below) / 2;
        double there = recall_at(middle);
        (there < wanted ? below : enough) = middle;
        if (there >= wanted)
            reached = there;
    }
    return enough;
}

// ---- both ----

void compare(const Case &c, const pnb_index *ours, faiss::Index &theirs, size_t effort,
             size_t each, int rounds, const char *name) {
    std::vector<double> our_s, their_s;
    for (int round = 0; round <= rounds; round++) {
        double a = ask_theirs(c, theirs, effort, each).seconds, b = ask_ours(c, ours, each).seconds;
        if (round == 0)
            continue;
        their_s.push_back(a);
        our_s.push_back(b);
    }
    double n = static_cast<double>(c.queries.n);
    std::printf(", \"%s\": {\"ours\": %.2f, \"faiss\": %.2f}", name, n / median(our_s),
                n / median(their_s));
}

void report(const Case &c, const Rows &rows, int rounds) {
    double build_s = -1, their_recall = 0;
    pnb_index *ours = open_ours(c, build_s);
    pnb_index_about about;
    pnb_index_describe(ours, &about);
    std::unique_ptr<faiss::Index> theirs = open_theirs(c);
    Recall found = recall(c.truth, ask_ours(c, ours, c.queries.n).id, c.k);
    size_t effort = least_effort(c, *theirs, found.mean, their_recall);
    std::printf("{\"faiss\": \"%d.%d.%d\", \"kind\": \"%s\", \"n\": %zu, \"dim\": %zu, \"build_s\": "
                "%.1f, \"bytes_a_row\": %.1f, \"recall\": %.5f, \"recall_se\": %.5f, \"effort\": %zu, "
                "\"faiss_recall\": %.5f, \"faiss_effort\": %zu, \"recall_of_rows\": %.5f",
                FAISS_VERSION_MAJOR, FAISS_VERSION_MINOR, FAISS_VERSION_PATCH, c.kind, rows.n,
                rows.dim, build_s, about.bytes / static_cast<double>(rows.n), found.mean,
                found.error, about.effort, their_recall, effort, about.recall);
    compare(c, ours, *theirs, effort, c.queries.n, rounds, "together");
    compare(c, ours, *theirs, effort, 1, rounds, "alone");
    std::printf("}\n");
    pnb_index_free(ours);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 10) {
        std::fprintf(stderr,
                     "usage: faiss_ann hnsw|ivf FILE N DIM FACTORS K THREADS ROUNDS QUERIES\n");
        return 2;
    }
    auto number = [&](int i) { return std::strtoul(argv[i], nullptr, 10); };
    size_t n = number(3), dim = number(4), n_factors = number(5), n_queries = number(9);
    int threads = static_cast<int>(number(7));
    omp_set_num_threads(threads);
    Rows rows = make(1, n, dim, n_factors), queries = make(2, n_queries, dim, n_factors);
    Case c = {argv[1], argv[2], number(6), nullptr, rows.view(), queries.view(), {}, {}};
    for (size_t q = 0; q < n_queries; q++) {
        c.asked.insert(c.asked.end(), queries.mean.begin() + static_cast<std::ptrdiff_t>(q * dim),
                       queries.mean.begin() + static_cast<std::ptrdiff_t>((q + 1) * dim));
        c.asked.push_back(1);
    }
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    ctx_opts.n_threads = threads;
    check(pnb_ctx_create(&c.ctx, &ctx_opts, &err), err);
    pnb_search_opts exact = options(c);
    exact.kind = PNB_INDEX_EXACT;
    pnb_hits hits;
    check(pnb_search(c.ctx, &c.queries, &c.gallery, &exact, &hits, &err), err);
    c.truth = ids(hits);
    report(c, rows, static_cast<int>(number(8)));
    pnb_ctx_free(c.ctx);
    return 0;
}
