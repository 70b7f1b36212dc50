/* File names that are no UTF-8, kept byte for byte through JSON.
 *
 * A POSIX name is a string of bytes, JSON text is Unicode. A byte that is not part of valid UTF-8
 * is written as the lone surrogate \udc80 .. \udcff, as Python's "surrogateescape" has it: what
 * json.loads makes of it opens the file. JSON readers refuse lone surrogates, so while a text is in
 * memory two non-characters (U+FDD8..U+FDDF, U+FDE0..U+FDEF), which Unicode leaves to a program's
 * inside, stand for it; both forms have six bytes. */
#ifndef PNB_IO_BYTE_NAMES_H
#define PNB_IO_BYTE_NAMES_H

#include "base/base.h"

/* Appends a JSON string of any bytes. */
void pnb__byte_name_append(pnb__buf *b, const char *name);

/* Appends a name as it is in memory while JSON is parsed or made: UTF-8. */
void pnb__byte_name_hidden(pnb__buf *b, const char *name);

/* Lone surrogates of a JSON text to pairs of non-characters, before it is parsed; and back, before
 * it is written. In place. */
void pnb__byte_names_hide(char *json, size_t n);
void pnb__byte_names_show(char *json, size_t n);

/* A string of parsed JSON to the bytes it stands for, in place. */
void pnb__byte_name_restore(char *text);

#endif
