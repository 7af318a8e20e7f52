// Masks names, and ends an answer before a forbidden one. The host looks for them; this is called only where it found one.

#include "jackfield.h"

// Indexes of the watches.
enum { NAMES, FORBIDDEN };

// What `rules.toml` says.
static struct {
  jf_string_t mask;
  jf_texts_t names, forbidden;
} rules;

void jf_describe(jf_description_t *ret) { *ret = jf_description("{{name}}", "0.1.0"); }

// A name goes into a pattern as it is, and everything that means something there is ASCII.
static bool is_plain(jf_string_t name) {
  for (size_t at = 0; at < name.len; at++) {
    uint8_t c = name.ptr[at], letter = c | 32;
    if (c < 0x80 && !(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

static bool check(jf_texts_t names, jf_string_t *err) {
  for (size_t n = 0; n < names.len; n++) {
    if (is_plain(names.ptr[n])) continue;
    jf_writer_t why = {0};
    jf_put_literal(&why, "`");
    jf_put(&why, names.ptr[n]);
    jf_put_literal(&why, "` has more in it than letters and digits");
    return jf_fail_with(err, why.text);
  }
  return true;
}

bool jf_configure(jf_string_t *config, jf_string_t *err) {
  const jf_json_t *root = jf_json(*config);
  if (!root) return jf_fail(err, "the configuration is not JSON");
  rules.mask = jf_as_text(jf_get(root, "mask"));
  rules.names = jf_as_texts(jf_get(root, "names"));
  rules.forbidden = jf_as_texts(jf_get(root, "forbidden"));
  return check(rules.names, err) && check(rules.forbidden, err);
}

// One pattern for all names of a list, so that no two of its hits overlap.
static jf_watch_t watch(const char *name, jf_texts_t names) {
  jf_writer_t regex = {0};
  for (size_t n = 0; n < names.len; n++) {
    jf_put_literal(&regex, n == 0 ? "(?i:" : "|");
    jf_put(&regex, names.ptr[n]);
  }
  jf_put_literal(&regex, ")");
  return (jf_watch_t){jf_text(name), regex.text};
}

void jf_interests(jf_interest_t *ret) {
  *ret = (jf_interest_t){.watches = {JF_NEW(jf_watch_t, 2), 1}};
  ret->watches.ptr[NAMES] = watch("names", rules.names);
  if (rules.forbidden.len > 0) ret->watches.ptr[ret->watches.len++] = watch("forbidden", rules.forbidden);
}

static jf_verdict_t verdict(uint32_t window, const jf_window_t *seen) {
  jf_verdict_t verdict = {.window = window, .replace.ptr = JF_NEW(jf_replacement_t, seen->hits.len)};
  size_t end = seen->pending.len;
  for (size_t n = 0; n < seen->hits.len && !verdict.stop.is_some; n++) {
    if (seen->hits.ptr[n].watch != FORBIDDEN) continue;
    end = seen->hits.ptr[n].at.start;
    verdict.stop = (jf_option_string_t){true, jf_text("a forbidden name")};
  }
  for (size_t n = 0; n < seen->hits.len; n++) {
    jf_hit_t hit = seen->hits.ptr[n];
    if (hit.watch == NAMES && hit.at.end <= end)
      verdict.replace.ptr[verdict.replace.len++] = (jf_replacement_t){hit.at, rules.mask};
  }
  verdict.hold_bytes = seen->pending.len - end;
  return verdict;
}

bool jf_review(jf_list_window_t *windows, jf_list_verdict_t *ret, jf_string_t *err) {
  *ret = (jf_list_verdict_t){JF_NEW(jf_verdict_t, windows->len), windows->len};
  for (size_t n = 0; n < windows->len; n++) ret->ptr[n] = verdict(n, &windows->ptr[n]);
  return true;
}
