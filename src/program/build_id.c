/* What tells one build of the program from another (elf(5), the note NT_GNU_BUILD_ID).
 *
 * The linker's own hash is in memory already. Hashing the executable instead reads all of it, tens
 * of megabytes in each process of a launcher, and is left to programs that were linked without. */
#define _GNU_SOURCE 1
#include "program/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const unsigned char *bytes;
    size_t n;
} found_id;

static size_t padded(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

const unsigned char *pnb__build_id_in(const unsigned char *notes, size_t size, size_t *n)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes, sizeof note);
        size_t name = padded(note.n_namesz), body = padded(note.n_descsz);
        if (name > size - sizeof note || body > size - sizeof note - name)
            return NULL;
        const unsigned char *at = notes + sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 && note.n_descsz > 0) {
            *n = note.n_descsz;
            return at + name;
        }
        notes = at + name + body;
        size -= sizeof note + name + body;
    }
    return NULL;
}

/* The first object that the loader lists is the program itself. */
static int look_at_program(struct dl_phdr_info *object, size_t size, void *data)
{
    found_id *found = data;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum && found->bytes == NULL; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        /* an address: where the loader put the program and how far in the notes lie */
        const void *notes = (const void *)(uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        found->bytes = pnb__build_id_in(notes, segment->p_memsz, &found->n);
    }
    return 1;
}

static pnb_status hash_executable(pnb__buf *out, pnb_error *err)
{
    char hex[65], *bytes = NULL;
    size_t n = 0;
    pnb__sha256 sha;
    pnb_status status = pnb__read_file("/proc/self/exe", SIZE_MAX / 2, &bytes, &n, err);
    if (status != PNB_OK)
        return status;
    pnb__sha256_init(&sha);
    pnb__sha256_update(&sha, bytes, n);
    pnb__sha256_hex(&sha, hex);
    pnb__free(bytes);
    pnb__buf_printf(out, "sha256 %s", hex);
    return PNB_OK;
}

pnb_status pnb__build_id(pnb__buf *out, pnb_error *err)
{
    found_id found = {0};
    dl_iterate_phdr(look_at_program, &found);
    if (found.bytes == NULL)
        return hash_executable(out, err);
    pnb__buf_printf(out, "build-id ");
    for (size_t i = 0; i < found.n; i++)
        pnb__buf_printf(out, "%02x", found.bytes[i]);
    return PNB_OK;
}
