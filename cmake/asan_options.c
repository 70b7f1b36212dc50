/* ASan's options, in every sanitized program, so that one started by hand has them too. They are in
 * the program itself and not in a room: where rooms are shared libraries, ASan's own come before
 * theirs. Its default is to end the program on an absurd size; we want the NULL that malloc gives.
 * Tests put tables of their own in place of a room's (families, say), which is no violation. Frames
 * are kept behind their return where rooms are tested and not in `penumbra` (PNB_KEEP_FRAMES): what
 * it runs is tested there, and it would take a tenth longer. Undefined behaviour runs into an instruction
 * that is none (flags.cmake), whose stack is shown as that of a bad address is. */
#ifndef PNB_KEEP_FRAMES
#define PNB_KEEP_FRAMES "1"
#endif
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:strict_string_checks=1:detect_odr_violation=0:"
           "handle_sigill=1:detect_stack_use_after_return=" PNB_KEEP_FRAMES;
}
