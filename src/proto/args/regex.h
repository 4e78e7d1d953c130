/* Regular expressions of users, in the form that they bring along from grep -E, Perl and Python:
 *
 *     .  [a-z_] [^...] [[:alpha:]]  x* x+ x? x{2,5}  a|b  (...)  (?:...)  ^ $ \b \B
 *     \d \D \s \S \w \W  \a \e \f \n \r \t \v  \ before any sign
 *
 * compiled by regcomp(). What POSIX cannot say is refused by name: back-references, what is
 * repeated as seldom as possible (x*?), assertions, \S in brackets. */
#ifndef PROTO_ARGS_REGEX_H
#define PROTO_ARGS_REGEX_H

#include <regex.h>

#include "base/err.h"

#define REGEX_GROUPS 2

/* ret_groups: the indices of the first groups (...) in what regexec() finds, 0 for one that is not
 * there; may be NULL. flags: as of regcomp(). -EINVAL with the reason. The caller regfree()s. */
int regex_compile(regex_t *ret_regex, const char *text, int flags, size_t ret_groups[REGEX_GROUPS],
		  struct err *err);

#endif
