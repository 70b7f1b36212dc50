/* The linker's id of this program, beside what its file says; and notes that are not it, or lie. */
#define _GNU_SOURCE 1
#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program/build_id.h"

/* One note, written at `at`: a name with its zero, then n bytes that count up from `first`. */
static size_t put_note(unsigned char *at, uint32_t type, const char *name, uint32_t n, int first)
{
    uint32_t head[3] = {(uint32_t)strlen(name) + 1, n, type};
    size_t name_size = (head[0] + 3) / 4 * 4, size = sizeof head + name_size + (n + 3) / 4 * 4;
    memset(at, 0, size);
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, name, head[0]);
    for (uint32_t i = 0; i < n; i++)
        at[sizeof head + name_size + i] = (unsigned char)(first + (int)i);
    return size;
}

static void test_finds_the_note(void **state)
{
    unsigned char notes[256];
    size_t n = 0, size = put_note(notes, 1, "GNU", 16, 0);
    (void)state;
    size += put_note(notes + size, NT_GNU_BUILD_ID, "Other", 7, 50);
    size += put_note(notes + size, NT_GNU_BUILD_ID, "GNU", 0, 0);
    assert_null(pnb__build_id_in(notes, size, &n));
    size += put_note(notes + size, NT_GNU_BUILD_ID, "GNU", 20, 100);
    size += put_note(notes + size, NT_GNU_BUILD_ID, "GNU", 20, 200);
    const unsigned char *id = pnb__build_id_in(notes, size, &n);
    assert_non_null(id);
    assert_int_equal(n, 20);
    assert_int_equal(id[0], 100);
    assert_int_equal(id[19], 119);
}

static void test_notes_that_lie(void **state)
{
    unsigned char notes[64];
    size_t n = 0, size = put_note(notes, NT_GNU_BUILD_ID, "GNU", 20, 100);
    (void)state;
    for (size_t cut = 0; cut < size; cut++) { /* memory that ends there: the sanitizer would see */
        unsigned char *less = malloc(cut > 0 ? cut : 1);
        assert_non_null(less);
        memcpy(less, notes, cut);
        assert_null(pnb__build_id_in(less, cut, &n));
        free(less);
    }
    for (size_t field = 0; field < 2; field++) {
        uint32_t huge = UINT32_MAX - 1;
        put_note(notes, NT_GNU_BUILD_ID, "GNU", 20, 100);
        memcpy(notes + 4 * field, &huge, sizeof huge);
        assert_null(pnb__build_id_in(notes, size, &n));
    }
}

/* The same id by way of the file: its program headers, and the bytes where they say. */
static void test_is_the_files(void **state)
{
    pnb__buf text = {0}, want = {0};
    char *bytes = NULL;
    size_t size = 0;
    pnb_error err = {0};
    (void)state;
    pnb__buf_puts(&text, "build: ");
    assert_int_equal(pnb__build_id(&text, &err), PNB_OK);
    pnb__buf_puts(&want, "build: build-id ");
    assert_int_equal(pnb__read_file("/proc/self/exe", SIZE_MAX / 2, &bytes, &size, &err), PNB_OK);
    ElfW(Ehdr) file;
    memcpy(&file, bytes, sizeof file);
    for (size_t i = 0; i < file.e_phnum; i++) {
        ElfW(Phdr) segment;
        size_t n = 0;
        memcpy(&segment, bytes + file.e_phoff + i * file.e_phentsize, sizeof segment);
        if (segment.p_type != PT_NOTE)
            continue;
        const unsigned char *id =
            pnb__build_id_in((unsigned char *)bytes + segment.p_offset, segment.p_filesz, &n);
        for (size_t b = 0; id != NULL && b < n; b++)
            pnb__buf_printf(&want, "%02x", id[b]);
    }
    pnb__free(bytes);
    assert_string_equal(text.data, want.data);
    assert_true(text.size >= strlen("build: build-id ") + 16);
    pnb__buf_reset(&text);
    pnb__buf_reset(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_note),
        cmocka_unit_test(test_notes_that_lie),
        cmocka_unit_test(test_is_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
