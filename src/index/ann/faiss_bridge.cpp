// FAISS behind C functions: nothing of C++, no exception above all, gets out.
//
// FAISS takes its threads from OpenMP; the calling thread's own number is set for each call and put
// back. 1.7.3 has its ids as faiss::Index::idx_t, later versions as faiss::idx_t as well.
#include "index/ann/faiss_bridge.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <vector>

struct pnb__faiss {
    std::unique_ptr<faiss::IndexFlatIP> cells; // of an IVF that was built here
    std::unique_ptr<faiss::Index> index;
};

namespace {

class Threads {
  public:
    explicit Threads(int n) : before(omp_get_max_threads()) { omp_set_num_threads(std::max(n, 1)); }
    ~Threads() { omp_set_num_threads(before); }
    Threads(const Threads &) = delete;
    Threads &operator=(const Threads &) = delete;

  private:
    int before;
};

void tell(pnb__faiss_error *why, const char *text, bool is_memory) {
    why->is_memory = is_memory;
    why->is_stopped = false;
    std::snprintf(why->text, sizeof why->text, "%s", text);
}

struct Stopped {};

// A piece at a time, so that it can be watched and stopped. A piece is large enough for all threads.
void add_rows(faiss::Index &index, const pnb__faiss_rows &rows) {
    const size_t piece = 4096;
    for (size_t at = 0; at < rows.n; at += piece) {
        if (rows.step != nullptr && !rows.step(rows.user, at, rows.n))
            throw Stopped();
        index.add(static_cast<faiss::Index::idx_t>(std::min(piece, rows.n - at)),
                  rows.x + at * rows.width);
    }
}

// Runs what may throw.
template <typename Work> bool guarded(pnb__faiss_error *why, Work work) {
    try {
        work();
        return true;
    } catch (const Stopped &) {
        tell(why, "stopped", false);
        why->is_stopped = true;
    } catch (const std::bad_alloc &) {
        tell(why, "out of memory", true);
    } catch (const std::exception &e) {
        tell(why, e.what(), false);
    } catch (...) {
        tell(why, "an unknown exception", false);
    }
    return false;
}

// A graph's walk keeps as many rows as hits are wanted, or as the index's own efSearch says, whatever
// efSearch the parameters of one search have (1.7.3). The index is everybody's and stays as it is, so
// as many hits are wanted as rows are to be kept.
void search_wide(const faiss::Index &index, const pnb__faiss_query &query, int64_t *id,
                 float *product, const faiss::SearchParameters *how) {
    const size_t most = size_t(1) << 20, wide = query.effort, dim = static_cast<size_t>(index.d);
    const size_t each = std::max(std::min(query.n, most / wide), size_t(1));
    std::vector<faiss::Index::idx_t> ids(each * wide);
    std::vector<float> products(each * wide);
    for (size_t at = 0; at < query.n; at += each) {
        size_t n = std::min(each, query.n - at);
        index.search(static_cast<faiss::Index::idx_t>(n), query.x + at * dim,
                     static_cast<faiss::Index::idx_t>(wide), products.data(), ids.data(), how);
        for (size_t q = 0; q < n; q++) {
            std::copy_n(ids.data() + q * wide, query.k, id + (at + q) * query.k);
            std::copy_n(products.data() + q * wide, query.k, product + (at + q) * query.k);
        }
    }
}

// Rows of a graph, which meets them one by one: their products are ours. FAISS as Debian builds it has
// none but those of any x86-64. FAISS writes and reads such rows as the IndexFlat that they are.
class Rows : public faiss::IndexFlat {
  public:
    Rows(size_t width, pnb__faiss_dot_fn f)
        : faiss::IndexFlat(static_cast<faiss::Index::idx_t>(width), faiss::METRIC_INNER_PRODUCT),
          dot(f) {}
    Rows(faiss::IndexFlat &&other, pnb__faiss_dot_fn f)
        : faiss::IndexFlat(std::move(other)), dot(f) {}
    faiss::FlatCodesDistanceComputer *get_FlatCodesDistanceComputer() const override;

  private:
    pnb__faiss_dot_fn dot;
};

class Products : public faiss::FlatCodesDistanceComputer {
  public:
    Products(const Rows &rows, pnb__faiss_dot_fn f)
        : faiss::FlatCodesDistanceComputer(rows.codes.data(), rows.code_size), dot(f),
          width(static_cast<size_t>(rows.d)), query(nullptr) {}
    void set_query(const float *x) override { query = x; }
    float distance_to_code(const uint8_t *row) override {
        return static_cast<float>(dot(width, query, row));
    }
    float symmetric_dis(faiss::Index::idx_t i, faiss::Index::idx_t j) override {
        return static_cast<float>(dot(width, codes + static_cast<size_t>(i) * code_size,
                                      codes + static_cast<size_t>(j) * code_size));
    }

  private:
    pnb__faiss_dot_fn dot;
    size_t width;
    const float *query;
};

faiss::FlatCodesDistanceComputer *Rows::get_FlatCodesDistanceComputer() const {
    return dot != nullptr ? new Products(*this, dot)
                          : faiss::IndexFlat::get_FlatCodesDistanceComputer();
}

void replace_rows(faiss::IndexHNSW &graph, std::unique_ptr<Rows> rows) {
    if (graph.own_fields)
        delete graph.storage;
    graph.storage = rows.release();
    graph.own_fields = true;
}

class Writer : public faiss::IOWriter {
  public:
    Writer(pnb__faiss_write_fn f, void *u) : write(f), user(u) {}
    size_t operator()(const void *bytes, size_t size, size_t n) override {
        return write(user, bytes, size * n) ? n : 0;
    }

  private:
    pnb__faiss_write_fn write;
    void *user;
};

class Reader : public faiss::IOReader {
  public:
    Reader(const void *b, size_t size) : at(static_cast<const char *>(b)), left(size) {}
    size_t operator()(void *to, size_t size, size_t n) override {
        size_t whole = size == 0 ? 0 : std::min(n, left / size);
        if (whole == 0) // empty arrays are read into nowhere
            return 0;
        std::memcpy(to, at, whole * size);
        at += whole * size;
        left -= whole * size;
        return whole;
    }

  private:
    const char *at;
    size_t left;
};

} // namespace

extern "C" {

bool pnb__faiss_hnsw(pnb__faiss **out, const pnb__faiss_rows *rows, int n_links, int breadth,
                     pnb__faiss_error *why) {
    return guarded(why, [&] {
        Threads threads(rows->n_threads);
        auto made = std::make_unique<pnb__faiss>();
        auto graph = std::make_unique<faiss::IndexHNSWFlat>(static_cast<int>(rows->width), n_links,
                                                            faiss::METRIC_INNER_PRODUCT);
        replace_rows(*graph, std::make_unique<Rows>(rows->width, rows->dot));
        graph->hnsw.efConstruction = breadth;
        add_rows(*graph, *rows);
        made->index = std::move(graph);
        *out = made.release();
    });
}

bool pnb__faiss_ivf(pnb__faiss **out, const pnb__faiss_rows *rows, size_t n_lists,
                    pnb__faiss_error *why) {
    return guarded(why, [&] {
        Threads threads(rows->n_threads);
        auto made = std::make_unique<pnb__faiss>();
        auto n = static_cast<faiss::Index::idx_t>(rows->n);
        made->cells = std::make_unique<faiss::IndexFlatIP>(
            static_cast<faiss::Index::idx_t>(rows->width));
        auto index = std::make_unique<faiss::IndexIVFFlat>(made->cells.get(), rows->width, n_lists,
                                                           faiss::METRIC_INNER_PRODUCT);
        index->cp.min_points_per_centroid = 1; // no line on standard error for small sets
        index->train(n, rows->x);
        add_rows(*index, *rows);
        made->index = std::move(index);
        *out = made.release();
    });
}

bool pnb__faiss_flat(pnb__faiss **out, size_t width, pnb__faiss_error *why) {
    return guarded(why, [&] {
        auto made = std::make_unique<pnb__faiss>();
        made->index =
            std::make_unique<faiss::IndexFlatIP>(static_cast<faiss::Index::idx_t>(width));
        *out = made.release();
    });
}

bool pnb__faiss_add(pnb__faiss *index, const float *x, size_t n, pnb__faiss_error *why) {
    return guarded(why, [&] { index->index->add(static_cast<faiss::Index::idx_t>(n), x); });
}

void pnb__faiss_free(pnb__faiss *index) {
    if (index == nullptr)
        return;
    index->index.reset(); // before the cells that it points to
    delete index;
}

bool pnb__faiss_search(const pnb__faiss *index, const pnb__faiss_query *query, int64_t *id,
                       float *product, pnb__faiss_error *why) {
    return guarded(why, [&] {
        Threads threads(query->n_threads);
        faiss::IDSelectorBitmap some((static_cast<size_t>(index->index->ntotal) + 7) / 8,
                                     query->bits);
        faiss::IDSelector *only = query->bits != nullptr ? &some : nullptr;
        faiss::SearchParametersHNSW graph;
        faiss::SearchParametersIVF cells;
        graph.efSearch = static_cast<int>(std::max(query->effort, query->k));
        graph.sel = only;
        cells.nprobe = query->effort;
        cells.sel = only;
        bool is_graph = dynamic_cast<const faiss::IndexHNSW *>(index->index.get()) != nullptr;
        faiss::SearchParameters *how = is_graph
                                           ? static_cast<faiss::SearchParameters *>(&graph)
                                           : static_cast<faiss::SearchParameters *>(&cells);
        if (is_graph && query->effort > query->k)
            search_wide(*index->index, *query, id, product, how);
        else
            index->index->search(static_cast<faiss::Index::idx_t>(query->n), query->x,
                                 static_cast<faiss::Index::idx_t>(query->k), product, id, how);
    });
}

bool pnb__faiss_write(const pnb__faiss *index, pnb__faiss_write_fn write, void *user,
                      pnb__faiss_error *why) {
    return guarded(why, [&] {
        Writer writer(write, user);
        faiss::write_index(index->index.get(), &writer);
    });
}

bool pnb__faiss_read(pnb__faiss **out, const void *bytes, size_t n, size_t n_rows, size_t width,
                     pnb__faiss_error *why) {
    bool fits = false;
    bool done = guarded(why, [&] {
        Reader reader(bytes, n);
        auto made = std::make_unique<pnb__faiss>();
        made->index.reset(faiss::read_index(&reader));
        bool is_ours = dynamic_cast<faiss::IndexHNSW *>(made->index.get()) != nullptr ||
                       dynamic_cast<faiss::IndexIVFFlat *>(made->index.get()) != nullptr ||
                       dynamic_cast<faiss::IndexFlat *>(made->index.get()) != nullptr;
        fits = is_ours && static_cast<size_t>(made->index->ntotal) == n_rows &&
               static_cast<size_t>(made->index->d) == width;
        if (fits)
            *out = made.release();
    });
    if (done && !fits)
        tell(why, "it is an index of other rows", false);
    return done && fits;
}

bool pnb__faiss_use_dot(pnb__faiss *index, pnb__faiss_dot_fn dot, pnb__faiss_error *why) {
    return guarded(why, [&] {
        auto *graph = dynamic_cast<faiss::IndexHNSW *>(index->index.get());
        auto *rows = graph != nullptr ? dynamic_cast<faiss::IndexFlat *>(graph->storage) : nullptr;
        if (rows != nullptr)
            replace_rows(*graph, std::make_unique<Rows>(std::move(*rows), dot));
    });
}

const char *pnb__faiss_version(void) {
    static const char text[] = {static_cast<char>('0' + FAISS_VERSION_MAJOR), '.',
                                static_cast<char>('0' + FAISS_VERSION_MINOR), '.',
                                static_cast<char>('0' + FAISS_VERSION_PATCH), '\0'};
    return text;
}
}
