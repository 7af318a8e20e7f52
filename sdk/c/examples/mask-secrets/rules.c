#include "rules.h"

#include "widen.h"

#define EMAIL "[A-Za-z0-9._%+\\-]{1,64}@(?:[A-Za-z0-9\\-]+\\.)+[A-Za-z]{2,}"

static bool is_on(const jf_json_t *section, const char *key) { return jf_as_bool(jf_get(section, key), true); }

static bool read_mask(const jf_json_t *section, jf_string_t usual, mask_t *mask, jf_string_t *err) {
  const jf_json_t *written = jf_get(section, "mask");
  return mask_parse(written ? jf_as_text(written) : usual, mask, err);
}

static wanted_t read_wanted(const jf_json_t *root) {
  const jf_json_t *card = jf_get(root, "card"), *phone = jf_get(root, "phone");
  return (wanted_t){
      .cards = is_on(card, "enabled"),
      .known_issuers_only = is_on(card, "known_issuers_only"),
      .chinese_mobile = is_on(phone, "enabled") && is_on(phone, "chinese_mobile"),
      .international = is_on(phone, "enabled") && is_on(phone, "international"),
      .resident_id = is_on(jf_get(root, "resident_id"), "enabled"),
  };
}

static bool read_email(const jf_json_t *section, watched_t *watched, jf_string_t *err) {
  watched->watch.name = jf_text("email");
  return read_mask(section, jf_text("[email]"), &watched->mask, err) &&
         widen(jf_text(EMAIL), &watched->watch.regex, err);
}

static jf_string_t join(const char *before, jf_string_t middle, const char *after) {
  jf_writer_t out = {0};
  jf_put_literal(&out, before);
  jf_put(&out, middle);
  jf_put_literal(&out, after);
  return out.text;
}

// An author's own `[[pattern]]`.
static bool read_pattern(const jf_json_t *pattern, watched_t *watched, jf_string_t *err) {
  jf_watch_t *watch = &watched->watch;
  *watch = (jf_watch_t){jf_as_text(jf_get(pattern, "name")), jf_as_text(jf_get(pattern, "regex"))};
  bool is_right = (!is_on(pattern, "widths") || widen(watch->regex, &watch->regex, err)) &&
                  read_mask(pattern, join("[", watch->name, "]"), &watched->mask, err);
  if (is_right) return true;
  jf_writer_t why = {0};
  jf_put(&why, join("pattern `", watch->name, "`: "));
  jf_put(&why, *err);
  return jf_fail_with(err, why.text);
}

static bool read_watches(const jf_json_t *root, rules_t *rules, jf_string_t *err) {
  const jf_json_t *email = jf_get(root, "email"), *patterns = jf_get(root, "pattern");
  const wanted_t *wanted = &rules->wanted;
  rules->watches = JF_NEW(watched_t, 2 + jf_count(patterns));
  watched_t *next = rules->watches;
  if (wanted->cards || wanted->chinese_mobile || wanted->international || wanted->resident_id)
    *next++ = (watched_t){.watch = {jf_text("numbers"), jf_text(RUNS_WATCH)}, .is_numbers = true};
  if (is_on(email, "enabled") && !read_email(email, next++, err)) return false;
  for (size_t n = 0; n < jf_count(patterns); n++)
    if (!read_pattern(jf_at(patterns, n), next++, err)) return false;
  rules->watch_count = next - rules->watches;
  // An output filter without watches would be called with every piece of text.
  return rules->watch_count > 0 || jf_fail(err, "nothing is enabled and there is no pattern: take the policy out instead");
}

bool rules_read(const jf_json_t *root, rules_t *rules, jf_string_t *err) {
  rules->wanted = read_wanted(root);
  return read_watches(root, rules, err) &&
         read_mask(jf_get(root, "card"), jf_text("[card]"), &rules->masks[CARD], err) &&
         read_mask(jf_get(root, "phone"), jf_text("[phone]"), &rules->masks[PHONE], err) &&
         read_mask(jf_get(root, "resident_id"), jf_text("[id]"), &rules->masks[RESIDENT_ID], err);
}
