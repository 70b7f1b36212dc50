/* What several people called each picture, as the entropy of their answers.
 *
 * CIFAR-10H and its like have a row of counts (or of probabilities) for each picture, a place for
 * each label. p = counts / their sum, H = -sum p log2 p in bits: 0 where all agree. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/tables/csv.h"
#include "penumbra/npy.h"
#include "truth/ground_truth.h"
#include "truth/id_resolver.h"

#define MAX_LABELS 65536

/* H of one row. FORMAT: a value below 0, no number, nothing but zeros, a sum beyond doubles. */
static pnb_status entropy_of(const double *count, size_t n, double *bits, const char *where,
                             size_t number, pnb_error *err)
{
    double sum = 0.0, h = 0.0;
    for (size_t l = 0; l < n; l++) {
        if (!(count[l] >= 0.0) || !isfinite(count[l]))
            return pnb__fail(err, PNB_FORMAT,
                             "%s %zu: label %zu is %g; counts or probabilities are wanted", where,
                             number, l, count[l]);
        sum += count[l];
    }
    if (!(sum > 0.0))
        return pnb__fail(err, PNB_FORMAT, "%s %zu: nobody gave this picture a label", where,
                         number);
    if (isinf(sum))
        return pnb__fail(err, PNB_FORMAT, "%s %zu: the counts of this picture add up to no number",
                         where, number);
    for (size_t l = 0; l < n; l++) {
        double p = count[l] / sum; /* 0 also where the count is far below the others */
        if (p > 0.0)
            h -= p * log2(p);
    }
    *bits = fmax(h, 0.0);
    return PNB_OK;
}

static pnb_status check_labels(size_t n_labels, const char *path, pnb_error *err)
{
    if (n_labels < 2 || n_labels > MAX_LABELS)
        return pnb__fail(err, PNB_FORMAT, "%s: %zu labels a picture; 2 to %d are read", path,
                         n_labels, MAX_LABELS);
    return PNB_OK;
}

/* ---- npy ---- */

static pnb_status load_npy(double *bits, const char *path, size_t n, pnb_error *err)
{
    pnb_npy file = {0};
    double *values = NULL;
    char *where = pnb__format("%s row", path);
    pnb_status status;
    if (where == NULL)
        return pnb__fail_nomem(err, strlen(path));
    PNB_TRY(pnb_npy_load(&file, path, err));
    if (file.view.n_dims != 2 || (size_t)file.view.shape[0] != n)
        PNB_TRY(pnb__fail(err, PNB_SHAPE, "%s: a matrix of %zu rows is wanted, one a picture", path,
                          n));
    size_t n_labels = (size_t)file.view.shape[1];
    PNB_TRY(check_labels(n_labels, path, err));
    PNB_TRY(PNB_ALLOC_ROWS(values, n, n_labels, err));
    PNB_TRY(pnb_array_to_f64(&file.view, values, err));
    for (size_t i = 0; i < n; i++)
        PNB_TRY(entropy_of(values + i * n_labels, n_labels, &bits[i], where, i, err));
done:
    pnb__free(values);
    pnb__free(where);
    pnb_npy_reset(&file);
    return status;
}

/* ---- table ---- */

static pnb_status read_counts(const pnb__csv *csv, double *count, const char *path, size_t line,
                              pnb_error *err)
{
    for (size_t l = 0; l + 1 < csv->n_columns; l++) {
        const char *field = csv->fields[l + 1];
        char *end;
        count[l] = strtod(field, &end);
        if (end == field || *end != '\0')
            return pnb__fail(err, PNB_FORMAT,
                             "%s line %zu: column %zu is '%.80s'; a number is wanted", path, line,
                             l + 2, field);
    }
    return PNB_OK;
}

static pnb_status load_table(double *bits, const char *path, const pnb_truth_rows *rows,
                             pnb_error *err)
{
    pnb__csv csv = {0};
    pnb__id_resolver names = {0};
    double *count = NULL;
    char *where = pnb__format("%s line", path);
    pnb_status status = where != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path));
    PNB_TRY(status);
    PNB_TRY(pnb__id_resolver_init(&names, PNB__NAMES_IMAGES, rows, err));
    PNB_TRY(pnb__csv_open(&csv, path, pnb__ends_with(path, ".tsv") ? '\t' : ',', err));
    PNB_TRY(check_labels(csv.n_columns - 1, path, err));
    PNB_TRY(PNB_ALLOC(count, csv.n_columns, err));
    for (bool more;;) {
        int64_t row;
        size_t line = csv.line; /* where the row begins */
        PNB_TRY(pnb__csv_next(&csv, &more, err));
        if (!more)
            break;
        PNB_TRY(pnb__id_resolver_find(&names, csv.fields[0], &row, err));
        if (row < 0)
            continue;
        if (!isnan(bits[row]))
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s line %zu: '%.200s' has labels already", path,
                              line, csv.fields[0]));
        PNB_TRY(read_counts(&csv, count, path, line, err));
        PNB_TRY(entropy_of(count, csv.n_columns - 1, &bits[row], where, line, err));
    }
done:
    pnb__csv_close(&csv);
    pnb__id_resolver_reset(&names);
    pnb__free(count);
    pnb__free(where);
    return status;
}

pnb_status pnb_label_entropy_load(double *bits, const char *path, const pnb_truth_rows *images,
                                  pnb_error *err)
{
    size_t n_known = 0;
    for (size_t i = 0; i < images->n; i++)
        bits[i] = (double)NAN;
    pnb_status status = pnb__ends_with(path, ".npy") ? load_npy(bits, path, images->n, err)
                                                     : load_table(bits, path, images, err);
    for (size_t i = 0; i < images->n; i++)
        n_known += isnan(bits[i]) ? 0 : 1;
    if (status == PNB_OK && n_known == 0)
        status =
            pnb__fail(err, PNB_NOT_FOUND, "%s names none of the %zu pictures", path, images->n);
    return status;
}
