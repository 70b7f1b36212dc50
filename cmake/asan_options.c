/* ASan's options, in every sanitized program, so that one started by hand has them too. They are in
 * the program itself and not in a room: where rooms are shared libraries, ASan's own come before
 * theirs. Its default is to end the program on an absurd size; we want the NULL that malloc gives.
 * Tests put tables of their own in place of a room's (families, say), which is no violation. Frames
 * that outlive their function cost a fifth of all time to find: fuzzers (Clang) look for them, and
 * any run with ASAN_OPTIONS=detect_stack_use_after_return=1. */
#ifdef __clang__
#define OUTLIVED "detect_stack_use_after_return=1:"
#else
#define OUTLIVED "detect_stack_use_after_return=0:"
#endif

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:strict_string_checks=1:" OUTLIVED "detect_odr_violation=0";
}
