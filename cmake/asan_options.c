/* ASan's options, in every sanitized program, so that one started by hand has them too. They are in
 * the program itself and not in a room: where rooms are shared libraries, ASan's own come before
 * theirs. Its default is to end the program on an absurd size; we want the NULL that malloc gives.
 * Tests put tables of their own in place of a room's (families, say), which is no violation. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:detect_stack_use_after_return=1:strict_string_checks=1:"
           "detect_odr_violation=0";
}
