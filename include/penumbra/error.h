/* Status codes and the error record every fallible call fills.
 *
 * A function that can fail returns pnb_status and takes a `pnb_error *` last. The record is the
 * caller's and may be NULL. The first error wins: a record that already holds one is not changed.
 *
 *     pnb_error err = PNB_ERROR_INIT;
 *     if (pnb_model_load(&model, ctx, dir, &err) != PNB_OK)
 *         fprintf(stderr, "%s: %s\n", pnb_status_name(err.status), err.text);
 *
 * Unless a function says otherwise, a failure leaves its outputs untouched and holds nothing that
 * would have to be freed; an array of the caller's that is filled value by value may then hold part
 * of the result, and a call that makes an object may leave NULL or all zero in *out.
 *
 * Everything that a file, an option or a request can cause is a status. A mistake in the program
 * itself (NULL where it is not said to be fine, an array that is too short) need not be noticed. */
#ifndef PENUMBRA_ERROR_H
#define PENUMBRA_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, sentence): the one list behind the enum, the names and the sentences. What a caller does:
 *
 * - OK: goes on; the outputs are there.
 * - ARG, SHAPE, DTYPE: asked for something that makes no sense; the text says what would.
 * - NUMERIC: looks for the row or parameter that the text names; no result is invented.
 * - NOMEM: frees something or asks for less; the library stays usable.
 * - IO, NOT_FOUND, EXISTS: looks at the path in the text; EXISTS never overwrites.
 * - FORMAT: the file is damaged, or of another kind; the text names the broken rule.
 * - BUSY: waits for the other process, or takes another place.
 * - LIMIT: raises the limit if the input is trusted.
 * - UNSUPPORTED: takes another build, machine or form of the file.
 * - INTERRUPTED: a watch or a flag of the caller said stop; what was saved stays.
 * - QUALITY: the result was made, and is worse than the limit that was asked for. */
#define PNB_STATUS_LIST(X)                                                                         \
    X(OK, "success")                                                                               \
    X(ARG, "an argument is outside its documented range")                                          \
    X(SHAPE, "shapes or sizes do not fit together")                                                \
    X(DTYPE, "the data type is not accepted here")                                                 \
    X(NUMERIC, "a value is not finite or a computation has no result")                             \
    X(NOMEM, "out of memory")                                                                      \
    X(IO, "reading or writing failed")                                                             \
    X(FORMAT, "the bytes are not what the format requires")                                        \
    X(NOT_FOUND, "something named does not exist")                                                 \
    X(EXISTS, "the target already exists")                                                         \
    X(BUSY, "another process holds the resource")                                                  \
    X(LIMIT, "a safety limit was exceeded")                                                        \
    X(UNSUPPORTED, "valid, but not supported by this build")                                       \
    X(INTERRUPTED, "stopped on request")                                                           \
    X(QUALITY, "a result is worse than the limit that was set")

/* PNB_OK is 0, so that `if (status)` means failure; the others are PNB_ARG, PNB_SHAPE and so on.
 * Every function that can fail says under Errors which of them, and when. */
typedef enum pnb_status {
#define PNB_STATUS_ENUM(name, sentence) PNB_##name,
    PNB_STATUS_LIST(PNB_STATUS_ENUM)
#undef PNB_STATUS_ENUM
        PNB_N_STATUS /* how many there are; never returned */
} pnb_status;

/* The caller's, one to a thread. One record does for a row of calls: check at the end, and the text
 * is that of the first that failed. */
typedef struct pnb_error {
    pnb_status status; /* PNB_OK while nothing failed */
    char text[512];    /* what was found, what was wanted, what to do; always terminated, and cut
                        * where it would be longer. UTF-8 where the names in it are */
} pnb_error;

/* An empty record, for an initialiser. All zero bytes are one too, so a record inside a zeroed
 * struct needs no more. */
#define PNB_ERROR_INIT                                                                             \
    {                                                                                              \
        PNB_OK, ""                                                                                 \
    }

/* Short name ("SHAPE"), as these headers write it; never NULL, "UNKNOWN" outside the list. */
const char *pnb_status_name(pnb_status status);
/* Its meaning in one sentence, for where no text is at hand; never NULL. */
const char *pnb_status_sentence(pnb_status status);

/* Empties a record so that it can be used again: while it holds an error, further ones are dropped.
 * NULL is fine. */
void pnb_error_reset(pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
