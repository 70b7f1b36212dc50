// What the programs beside FAISS share: directions that need no file, and seconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "penumbra/error.h"

inline uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

// Row `row` of those of a seed: a unit vector, its numbers sums of bytes of a counter-based hash.
inline void direction(uint64_t seed, size_t row, size_t dim, float *out) {
    double norm = 0;
    for (size_t d = 0; d < dim; d++) {
        uint64_t w = mix(mix(seed) + row * dim + d);
        int sum = -510;
        for (int i = 0; i < 4; i++)
            sum += static_cast<int>(w >> (8 * i) & 255);
        out[d] = static_cast<float>(sum);
        norm += static_cast<double>(sum) * sum;
    }
    for (size_t d = 0; d < dim; d++)
        out[d] = static_cast<float>(out[d] / std::sqrt(norm));
}

inline double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> x) {
    std::sort(x.begin(), x.end());
    size_t n = x.size();
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

inline void check(pnb_status status, const pnb_error &err) {
    if (status == PNB_OK)
        return;
    std::fprintf(stderr, "penumbra: %s\n", err.text);
    std::exit(1);
}
