#include "jackfield.h"

#include "config_schema.h"
#include "lower.h"

// ---- Memory: one arena that only grows. ----

#define PAGE 65536
// Before each block stands its size, so that it can be made larger.
#define HEAD 8

extern uint8_t __heap_base;
static uintptr_t top = 0;

void *malloc(size_t size) {
  if (top == 0) top = ((uintptr_t)&__heap_base + 7) & ~(uintptr_t)7;
  if (size > UINT32_MAX - 2 * HEAD) return NULL;
  size_t rounded = (size + 7) & ~(size_t)7;
  uintptr_t block = top + HEAD, end = block + rounded;
  size_t have = __builtin_wasm_memory_size(0) * (size_t)PAGE;
  // Only the last page can wrap.
  if (end < block) return NULL;
  if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == (size_t)-1) return NULL;
  *(size_t *)top = rounded;
  top = end;
  return (void *)block;
}

void *realloc(void *block, size_t size) {
  if (!block) return malloc(size);
  size_t had = *(size_t *)((uintptr_t)block - HEAD);
  if (size <= had) return block;
  bool is_last = (uintptr_t)block + had == top;
  if (is_last) top = (uintptr_t)block - HEAD;
  void *grown = malloc(size);
  if (grown && !is_last) memcpy(grown, block, had);
  return grown;
}

void free(void *block) { (void)block; }

_Noreturn void abort(void) { __builtin_trap(); }

void *jf_zeroed(size_t size) {
  void *block = malloc(size);
  if (!block) abort();
  return memset(block, 0, size);
}

// This file is compiled without built-ins, or the loops would become calls of themselves.
void *memcpy(void *to, const void *from, size_t count) { return __builtin_memcpy(to, from, count); }
void *memmove(void *to, const void *from, size_t count) { return __builtin_memmove(to, from, count); }
void *memset(void *to, int byte, size_t count) { return __builtin_memset(to, byte, count); }

int memcmp(const void *a, const void *b, size_t count) {
  const uint8_t *x = a, *y = b;
  for (; count > 0; x++, y++, count--)
    if (*x != *y) return *x - *y;
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length]) length++;
  return length;
}

// ---- Texts ----

jf_string_t jf_text(const char *literal) { return (jf_string_t){(uint8_t *)literal, strlen(literal)}; }

jf_string_t jf_slice(jf_string_t text, size_t start, size_t end) {
  if (end > text.len) end = text.len;
  if (start > end) start = end;
  return (jf_string_t){text.ptr + start, end - start};
}

bool jf_equal(jf_string_t a, jf_string_t b) { return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0; }

bool jf_starts_with(jf_string_t text, jf_string_t prefix) {
  return text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

// The scalar at `*at`, which is moved behind it. The text is valid UTF-8: the host saw to that.
static uint32_t next_scalar(jf_string_t text, size_t *at) {
  uint8_t first = text.ptr[(*at)++];
  if (first < 0x80) return first;
  int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  uint32_t scalar = first & (0x3f >> more);
  for (; more > 0 && *at < text.len; more--) scalar = scalar << 6 | (text.ptr[(*at)++] & 0x3f);
  return scalar;
}

static bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool jf_is_blank(jf_string_t text) {
  for (size_t at = 0; at < text.len;)
    if (!is_space(next_scalar(text, &at))) return false;
  return true;
}

static void make_room(jf_writer_t *out, size_t more) {
  size_t needed = out->text.len + more;
  if (needed <= out->room) return;
  // A text that no writer made has no room of its own, and must stay as it is.
  bool is_own = out->room > 0;
  out->room = 2 * needed + 16;
  uint8_t *grown = is_own ? realloc(out->text.ptr, out->room) : malloc(out->room);
  if (!grown) abort();
  if (!is_own && out->text.len > 0) memcpy(grown, out->text.ptr, out->text.len);
  out->text.ptr = grown;
}

void jf_put(jf_writer_t *out, jf_string_t text) {
  make_room(out, text.len);
  memcpy(out->text.ptr + out->text.len, text.ptr, text.len);
  out->text.len += text.len;
}

void jf_put_literal(jf_writer_t *out, const char *literal) { jf_put(out, jf_text(literal)); }

void jf_put_number(jf_writer_t *out, uint32_t number) {
  uint8_t digits[10];
  size_t first = sizeof digits;
  do digits[--first] = '0' + number % 10;
  while (number /= 10);
  jf_put(out, (jf_string_t){digits + first, sizeof digits - first});
}

size_t jf_encode(uint32_t scalar, uint8_t *to) {
  int more = scalar < 0x80 ? 0 : scalar < 0x800 ? 1 : scalar < 0x10000 ? 2 : 3;
  to[0] = more == 0 ? scalar : (0xff00 >> (more + 1) & 0xff) | scalar >> (6 * more);
  for (int n = 1; n <= more; n++) to[n] = 0x80 | (scalar >> (6 * (more - n)) & 0x3f);
  return 1 + more;
}

bool jf_fail_with(jf_string_t *err, jf_string_t why) {
  *err = why;
  return false;
}

bool jf_fail(jf_string_t *err, const char *why) { return jf_fail_with(err, jf_text(why)); }

// ---- Finding words ----

// The ASCII form of a full-width character.
static uint32_t narrow(uint32_t c) {
  if (c == 0x3000) return ' ';
  return c >= 0xff01 && c <= 0xff5e ? c - 0xfee0 : c;
}

static uint32_t lower(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  size_t low = 0, high = sizeof LOWER / sizeof *LOWER;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (LOWER[middle].last < c) low = middle + 1;
    else high = middle;
  }
  bool is_in = low < sizeof LOWER / sizeof *LOWER && LOWER[low].first <= c && (c - LOWER[low].first) % LOWER[low].step == 0;
  return is_in ? c + LOWER[low].difference : c;
}

static bool is_ascii(jf_string_t text) {
  for (size_t at = 0; at < text.len; at++)
    if (text.ptr[at] >= 0x80) return false;
  return true;
}

jf_folded_t jf_fold(jf_string_t original) {
  jf_writer_t out = {0};
  make_room(&out, original.len);
  if (is_ascii(original)) {
    for (size_t at = 0; at < original.len; at++) out.text.ptr[at] = lower(original.ptr[at]);
    out.text.len = original.len;
    return (jf_folded_t){out.text, NULL};
  }
  // No scalar becomes more than twice as long.
  jf_span_t *sources = JF_NEW(jf_span_t, 2 * original.len);
  make_room(&out, 2 * original.len);
  for (size_t at = 0; at < original.len;) {
    jf_span_t source = {at, 0};
    size_t before = out.text.len;
    uint32_t c = narrow(next_scalar(original, &at));
    if (c == 0x130) jf_put_literal(&out, "i\xcc\x87");
    else out.text.len += jf_encode(lower(c), out.text.ptr + out.text.len);
    source.end = at;
    for (size_t byte = before; byte < out.text.len; byte++) sources[byte] = source;
  }
  return (jf_folded_t){out.text, sources};
}

static bool is_word(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool stands_alone(jf_string_t text, size_t start, size_t end) {
  bool joined_before = start > 0 && is_word(text.ptr[start]) && is_word(text.ptr[start - 1]);
  bool joined_after = end < text.len && is_word(text.ptr[end - 1]) && is_word(text.ptr[end]);
  return !joined_before && !joined_after;
}

bool jf_find(const jf_folded_t *text, const jf_folded_t *term, jf_span_t *at) {
  size_t length = term->text.len;
  if (length == 0) return false;
  for (size_t start = 0; start + length <= text->text.len; start++) {
    size_t end = start + length;
    if (memcmp(text->text.ptr + start, term->text.ptr, length) != 0) continue;
    if (!stands_alone(text->text, start, end)) {
      // Matches do not overlap: the next one begins behind this one.
      start = end - 1;
      continue;
    }
    if (at && text->sources) *at = (jf_span_t){text->sources[start].start, text->sources[end - 1].end};
    else if (at) *at = (jf_span_t){start, end};
    return true;
  }
  return false;
}

// ---- What a policy says of itself ----

jf_description_t jf_description(const char *name, const char *version) {
  jf_description_t said;
  memset(&said, 0, sizeof said);
  said.name = jf_text(name);
  said.version = jf_text(version);
  said.config_schema = jf_text(CONFIG_SCHEMA);
  return said;
}

#ifdef JF_SLOT_EXTRACTOR
jf_slot_t jf_found(const char *name, jf_value_t value, jf_span_t source) {
  return (jf_slot_t){.name = jf_text(name), .value = value, .source = {true, source}, .confidence = 1};
}
#endif

#ifdef JF_ROUTER
jf_decision_t jf_run_on(const jf_target_t *target) {
  jf_decision_t decision;
  memset(&decision, 0, sizeof decision);
  decision.tag = JF_DECISION_RUN;
  decision.val.run.target = target->model;
  decision.val.run.mode = JF_MODE_GENERATE;
  decision.val.run.priority = 100;
  return decision;
}
#endif
