/** CHECK: a programmer's mistake ends the process in every build. Never for bytes read from
disk. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

/** Prints the place and the condition to stderr, then abort(). */
_Noreturn void check_failed(const char *file, int line, const char *condition);

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

#endif
