// Refuses what is too long and answers what has a fixed answer; everything else runs as the host would have it.

#include "jackfield.h"

// What `rules.toml` says: words folded, texts beside them.
static struct {
  double max_prompt_tokens;
  jf_folded_t *words;
  jf_string_t *texts;
  size_t count;
} rules;

void jf_describe(jf_description_t *ret) { *ret = jf_description("{{name}}", "0.1.0"); }

bool jf_configure(jf_string_t *config, jf_string_t *err) {
  const jf_json_t *root = jf_json(*config);
  if (!root) return jf_fail(err, "the configuration is not JSON");
  const jf_json_t *replies = jf_get(root, "reply");
  rules.max_prompt_tokens = jf_as_number(jf_get(root, "max_prompt_tokens"), UINT32_MAX);
  rules.count = jf_count(replies);
  rules.words = JF_NEW(jf_folded_t, rules.count);
  rules.texts = JF_NEW(jf_string_t, rules.count);
  for (size_t n = 0; n < rules.count; n++) {
    rules.words[n] = jf_fold(jf_as_text(jf_get(jf_at(replies, n), "word")));
    rules.texts[n] = jf_as_text(jf_get(jf_at(replies, n), "text"));
  }
  return true;
}

static jf_decision_t too_long(uint32_t tokens) {
  jf_writer_t reason = {0};
  jf_put_literal(&reason, "the prompt has ");
  jf_put_number(&reason, tokens);
  jf_put_literal(&reason, " tokens, more than ");
  jf_put_number(&reason, (uint32_t)rules.max_prompt_tokens);
  return (jf_decision_t){.tag = JF_DECISION_REFUSE, .val.refuse = {413, reason.text}};
}

bool jf_route(jf_turn_t *turn, jf_request_t *request, jf_list_target_t *fleet, jf_decision_t *ret, jf_string_t *err) {
  if (request->prompt_tokens > rules.max_prompt_tokens) {
    *ret = too_long(request->prompt_tokens);
    return true;
  }
  jf_folded_t asked = jf_fold(request->last_user_text);
  for (size_t n = 0; n < rules.count; n++) {
    if (!jf_find(&asked, &rules.words[n], NULL)) continue;
    *ret = (jf_decision_t){.tag = JF_DECISION_ANSWER, .val.answer = rules.texts[n]};
    return true;
  }
  if (fleet->len == 0) return jf_fail(err, "the fleet is empty");
  *ret = jf_run_on(&fleet->ptr[0]);
  return true;
}
