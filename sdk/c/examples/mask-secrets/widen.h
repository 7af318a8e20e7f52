// Rewrites a regex so that full-width forms match where ASCII was written.

#ifndef WIDEN_H
#define WIDEN_H

#include "jackfield.h"

// The same pattern for ASCII and full-width text. What it does not know it leaves as written. Refuses a pattern in verbose
// mode, where a space means nothing, and one that ends inside a class, a group or an escape.
bool widen(jf_string_t regex, jf_string_t *wide, jf_string_t *err);

#endif
