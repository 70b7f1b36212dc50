/* What a build knows of MPI without a launcher: both answers agree, and nothing is loaded for them.
 */
#include "tests/peers/together.h"

static bool maps_have(const char *name)
{
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, name) != NULL;
    fclose(maps);
    return found;
}

static void test_version(void **state)
{
    const char *version = pnb_peers_mpi_version();
    (void)state;
    assert_true(pnb__mpi_is_built() == (version != NULL));
    assert_true(version == NULL || (version[0] >= '4' && version[0] <= '9' && version[1] == '.'));
    assert_true(maps_have("libc"));
    assert_false(maps_have("libmpi"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
