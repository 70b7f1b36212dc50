/* Option tables: one table per command makes its parser, help text, manual page and completion. */
#ifndef PNB_PROGRAM_OPTIONS_H
#define PNB_PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"

/* How the words after an option are read, and the C type of the field they fill. */
typedef enum pnb__opt_kind {
    PNB__OPT_FLAG,   /* no value                                  bool            */
    PNB__OPT_INT,    /* whole number                              int64_t, int, size_t, uint64_t */
    PNB__OPT_REAL,   /* number, also 1e-4, inf                    double          */
    PNB__OPT_TEXT,   /* one word                                  const char *    */
    PNB__OPT_FILE,   /* one word that completes as a path         const char *    */
    PNB__OPT_CHOICE, /* one of `choices`                          const char *, or its place: an
                      *                                           enum, a bool of two choices */
    PNB__OPT_LIST,   /* one or more words; repeats append         pnb__text_list  */
    PNB__OPT_FILES,  /* the same, completing as paths             pnb__text_list  */
    PNB__OPT_REST    /* the words that belong to no option        pnb__text_list, const char * for
                      *                                           one word and no more */
} pnb__opt_kind;

/* Where a value goes: the place of the field in the struct that the table fills, and how wide it
 * is, in one number, for it is one argument of a row's macro. */
#define PNB__FIELD(type, field) (offsetof(type, field) | sizeof(((type *)0)->field) << 32)

typedef struct pnb__text_list {
    const char **items; /* the words themselves belong to argv or to the table */
    size_t n;
} pnb__text_list;

/* What an optional number holds when it was not given and its row has no fallback; test a real
 * with isnan. Text is NULL then, a list is empty, a flag false. */
#define PNB__INT_UNSET INT64_MIN

typedef struct pnb__option {
    const char *name; /* kebab-case; for PNB__OPT_REST only a label for messages */
    pnb__opt_kind kind;
    size_t at;            /* PNB__FIELD of what it fills */
    const char *value;    /* placeholder in help: "N", "DIR", "PATH..." */
    const char *fallback; /* default as it would be typed; NULL: none */
    const char *help;     /* one sentence without the default */
    const char *choices;  /* "a|b|c" for PNB__OPT_CHOICE */
    const char *names;    /* PNB_NAMES of the enum filled, where the choices are not its words in
                           * order; a choice that is none of them stands behind the last */
    double min, max;      /* closed range of a number; both 0: no range */
    const char *group;    /* starts a new heading in help from this row on */
    char letter;          /* one-letter form, 0: none */
    bool required;
    /* Words are captions or the like: one that names a file is refused, and this advised. */
    const char *instead_of_file;
    const char *writes; /* names an output: the endings it may have (".npy|.jsonl"), "*": any name,
                         * "/": a folder; NULL: no output. Checked before the command runs */
} pnb__option;

/* Rows of a table: the option's name, its PNB__FIELD, what stands for its value in help,
 * the sentence of help, and then any further fields by name. */
#define PNB__ROW_FLAG(word, field, ...)                                                            \
    {                                                                                              \
        .name = word, .kind = PNB__OPT_FLAG, .at = field, .help = __VA_ARGS__                      \
    }
#define PNB__ROW_OF(of_kind, word, field, placeholder, ...)                                        \
    {                                                                                              \
        .name = word, .kind = of_kind, .at = field, .value = placeholder, .help = __VA_ARGS__      \
    }
#define PNB__ROW_INT(...) PNB__ROW_OF(PNB__OPT_INT, __VA_ARGS__)
#define PNB__ROW_REAL(...) PNB__ROW_OF(PNB__OPT_REAL, __VA_ARGS__)
#define PNB__ROW_TEXT(...) PNB__ROW_OF(PNB__OPT_TEXT, __VA_ARGS__)
#define PNB__ROW_FILE(...) PNB__ROW_OF(PNB__OPT_FILE, __VA_ARGS__)
#define PNB__ROW_LIST(...) PNB__ROW_OF(PNB__OPT_LIST, __VA_ARGS__)
#define PNB__ROW_FILES(...) PNB__ROW_OF(PNB__OPT_FILES, __VA_ARGS__)
#define PNB__ROW_REST(...) PNB__ROW_OF(PNB__OPT_REST, __VA_ARGS__)
/* The words to choose from follow the placeholder: "a|b|c". */
#define PNB__ROW_CHOICE(word, field, placeholder, words, ...)                                      \
    {                                                                                              \
        .name = word, .kind = PNB__OPT_CHOICE, .at = field, .value = placeholder,                  \
        .choices = words, .help = __VA_ARGS__                                                      \
    }
#define PNB__RANGE(low, high) .min = low, .max = high

/* A value that was set before the command line: NAME is the option's, `where` is for messages. */
typedef struct pnb__preset {
    const char *name, *value, *where;
} pnb__preset;

struct pnb__app;
struct pnb__result;

/* One command, or a family with subcommands (then `subs` is set and the rest below it is not). */
typedef struct pnb__command {
    const char *name;    /* the word typed: "train", or "retrieval" below "eval" */
    const char *summary; /* one line, no full stop */
    const char *about;   /* paragraphs for help and manual, separated by empty lines; may be NULL */
    const char *examples;                   /* command lines, one a line; may be NULL */
    const struct pnb__command *const *subs; /* NULL-terminated; NULL for a plain command */
    const pnb__option *options;
    size_t n_options;
    size_t args_bytes; /* size of the struct that the table fills: the job's own, mostly */
    /* Fills all of it with what holds where nothing is given, once before the words are read and
     * once more, with what they said in it, before they are read for good: one option may choose
     * the defaults of others. NULL: what is not given is unset. */
    void (*defaults)(void *args);
    /* With `defaults`: presets that are weaker than all others, by what the first reading chose.
     * Not freed. NULL: none. */
    const pnb__preset *(*presets)(const void *args, size_t *n);
    /* What it finds goes into `r`, which is printed behind it; nothing is, where it stays empty. */
    pnb_status (*run)(struct pnb__app *app, void *args, struct pnb__result *r);
    bool joins; /* under mpirun, srun or torchrun all processes run it as one job */
} pnb__command;

/* The last fields of a command: its table, the struct that it fills, and what it does. */
#define PNB__RUNS(table, type, function)                                                           \
    .options = (table), .n_options = sizeof(table) / sizeof *(table), .args_bytes = sizeof(type),  \
    .run = (function)

/* A table and the struct it fills. */
typedef struct pnb__opt_set {
    const pnb__option *rows;
    size_t n;
    void *args;
    bool has_defaults; /* fields hold what they are without their option */
    bool *typed;       /* [n] set where a word of the command line is the row's; NULL: not asked */
} pnb__opt_set;

/* The field of a row. */
static inline void *pnb__option_field(const pnb__option *row, const void *args)
{
    return (char *)(uintptr_t)args + (row->at & UINT32_MAX);
}

/* Fills every field of the sets from the fallbacks, then from the words.
 *   --name value | --name=value | -x value | words...     `_` counts as `-` in names
 *   --flag | --flag=true | --flag=false
 *   A word that is exactly `--` ends the options; a lone `-` is an ordinary word.
 * Free with pnb__options_free, after a failure too.
 * Errors  ARG with a sentence naming the option, the word found and what was wanted */
pnb_status pnb__options_parse(const pnb__opt_set *sets, size_t n_sets, int n_words,
                              char *const *words, pnb_error *err);
/* The same, with presets between the fallbacks and the words, the weakest first; those of options
 * that the sets do not have are left out. Flags take true or false.
 * Errors  also ARG (a value of a preset, a preset of a list: the text names where it was set) */
pnb_status pnb__options_parse_over(const pnb__opt_set *sets, size_t n_sets,
                                   const pnb__preset *presets, size_t n_presets, int n_words,
                                   char *const *words, pnb_error *err);
void pnb__options_free(const pnb__opt_set *sets, size_t n_sets);

/* Whether a word reads as the name of a file: no blanks, and one of the usual endings. */
bool pnb__looks_like_file(const char *text);

/* Splits "key=value": the key's length, and the value behind it. False when there is no '='. */
bool pnb__key_value(const char *word, size_t *key_length, const char **value);

/* Reads a whole number or a real that fills the entire word. False: it is none. */
bool pnb__read_int(const char *word, int64_t *out);
bool pnb__read_real(const char *word, double *out);

#endif
