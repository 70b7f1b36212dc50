/* SHA-256 against the vectors of FIPS 180-4 and NIST's long message, whole and in pieces, by plain
 * C and by the CPU's own instructions where it has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"

static void assert_hash(const void *data, size_t n, const char *want)
{
    for (int plain = 0; plain < 2; plain++) {
        pnb__sha256 s;
        char hex[65];
        pnb__sha256_init(&s);
        s.plain = s.plain || plain != 0;
        pnb__sha256_update(&s, data, n);
        pnb__sha256_hex(&s, hex);
        assert_string_equal(hex, want);
    }
}

static void standard_vectors(void **state)
{
    (void)state;
    assert_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_hash(two_blocks, strlen(two_blocks),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million_letters(void **state)
{
    (void)state;
    char letters[1000], hex[65];
    memset(letters, 'a', sizeof letters);
    pnb__sha256 s;
    pnb__sha256_init(&s);
    for (int i = 0; i < 1000; i++)
        pnb__sha256_update(&s, letters, sizeof letters);
    pnb__sha256_hex(&s, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length around the block borders, cut in two at every place, gives the hash of the whole. */
static void pieces_give_the_same(void **state)
{
    (void)state;
    unsigned char data[200];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37 + 11);
    for (size_t n = 0; n <= sizeof data; n += n % 64 > 50 || n % 64 < 3 ? 1 : 16) {
        char whole[65], pieces[65];
        pnb__sha256 s;
        pnb__sha256_init(&s);
        s.plain = true;
        pnb__sha256_update(&s, data, n);
        pnb__sha256_hex(&s, whole);
        for (size_t cut = 0; cut <= n; cut++) {
            pnb__sha256_init(&s);
            pnb__sha256_update(&s, data, cut);
            pnb__sha256_update(&s, data + cut, n - cut);
            pnb__sha256_hex(&s, pieces);
            assert_string_equal(whole, pieces);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_vectors),
        cmocka_unit_test(a_million_letters),
        cmocka_unit_test(pieces_give_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
