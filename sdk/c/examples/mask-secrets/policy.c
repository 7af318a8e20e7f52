// Masks what must not leave the host: cards, phones, e-mail addresses, resident ids, and an author's own patterns. The same
// policy as plugins/mask-secrets, with its rules, its schema and its cases.
//
// The host watches every stream for what `jf_interests` declares and holds back what could become a match; only text with a
// match comes to `jf_review`. There the numbers are verified (check digits, dates, prefixes) and replaced. Patterns are
// trusted as the host found them.

#include "jackfield.h"

#include "review.h"
#include "rules.h"

static rules_t rules;

void jf_describe(jf_description_t *ret) { *ret = jf_description("mask-secrets", "0.1.0"); }

bool jf_configure(jf_string_t *config, jf_string_t *err) {
  const jf_json_t *root = jf_json(*config);
  if (!root) return jf_fail(err, "the configuration is not JSON");
  return rules_read(root, &rules, err);
}

void jf_interests(jf_interest_t *ret) {
  *ret = (jf_interest_t){.watches = {JF_NEW(jf_watch_t, rules.watch_count), rules.watch_count}};
  for (size_t n = 0; n < rules.watch_count; n++) ret->watches.ptr[n] = rules.watches[n].watch;
}

bool jf_review(jf_list_window_t *windows, jf_list_verdict_t *ret, jf_string_t *err) {
  *ret = (jf_list_verdict_t){JF_NEW(jf_verdict_t, windows->len), 0};
  for (size_t n = 0; n < windows->len; n++) {
    jf_verdict_t verdict = {.window = n};
    if (!review_window(&rules, &windows->ptr[n], &verdict, err)) return false;
    // A window without a verdict passes whole.
    if (verdict.replace.len > 0 || verdict.hold_bytes > 0) ret->ptr[ret->len++] = verdict;
  }
  return true;
}
