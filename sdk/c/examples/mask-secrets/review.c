#include "review.h"

#include "text.h"

// How many digits of a number that the host had to cut may belong to a secret that goes on behind the cut.
#define OPEN_DIGITS 19
// The shortest secret among the numbers has so many digits.
#define LEAST_DIGITS 7

// Pieces of text to be replaced.
typedef struct {
  jf_replacement_t *ptr;
  size_t len;
} covers_t;

// Whether a place is inside, not at an end.
static bool tears(jf_span_t at, size_t place) { return at.start < place && place < at.end; }

// ---- Finding ----

static jf_string_t counting_in(jf_string_t secret) {
  jf_writer_t counting = {0};
  for (size_t at = 0; at < secret.len;) {
    uint32_t c = next_character(secret, &at);
    if (is_alphanumeric(c)) put_character(&counting, c);
  }
  return counting.text;
}

static bool cover_hits(const rules_t *rules, const jf_window_t *window, covers_t *covers, jf_string_t *err) {
  jf_string_t text = window->pending;
  for (size_t n = 0; n < window->hits.len; n++) {
    jf_hit_t hit = window->hits.ptr[n];
    if (hit.watch >= rules->watch_count) return jf_fail(err, "a hit of an unknown watch");
    const watched_t *watched = &rules->watches[hit.watch];
    if (watched->is_numbers) continue;
    bool is_inside = hit.at.start <= hit.at.end && is_boundary(text, hit.at.start) && is_boundary(text, hit.at.end);
    if (!is_inside) return jf_fail(err, "a hit outside the text");
    jf_string_t counting = counting_in(jf_slice(text, hit.at.start, hit.at.end));
    covers->ptr[covers->len++] = (jf_replacement_t){hit.at, mask_apply(&watched->mask, counting)};
  }
  return true;
}

static bool has_cut_number(const rules_t *rules, jf_list_hit_t hits) {
  for (size_t n = 0; n < hits.len; n++)
    if (rules->watches[hits.ptr[n].watch].is_numbers && hits.ptr[n].cut) return true;
  return false;
}

// Where the end of a number begins that the host could not hold any longer; `otherwise` where it cannot be part of a secret.
static size_t open_from(const run_t *run, size_t otherwise) {
  size_t from = otherwise;
  for (size_t n = run->group_count; n > 0; n--) {
    if (run->digits.text.len - run->groups[n - 1].digits.start > OPEN_DIGITS) break;
    from = run->groups[n - 1].at.start;
  }
  return from;
}

// Covers the numbers, and says from where on the text is to be held because its last number was cut; the end of the text
// where none was. Numbers are found here and not taken from the hits, so that one which the host cut, and whose end was
// held, is seen whole.
static size_t cover_numbers(const rules_t *rules, const jf_window_t *window, covers_t *covers) {
  jf_string_t text = window->pending;
  bool is_cut = !window->final && has_cut_number(rules, window->hits);
  size_t hold_from = text.len;
  run_t run = {0};
  for (size_t at = 0; next_run(text, &at, &run);) {
    if (is_cut) hold_from = open_from(&run, text.len);
    found_t found;
    for (size_t from = 0; next_secret(&run, &rules->wanted, &from, &found);) {
      // What the held end would tear is held from its beginning, and found again with it.
      if (tears(found.at, hold_from)) hold_from = found.at.start;
      jf_string_t shown = mask_apply(&rules->masks[found.secret], found.counting);
      covers->ptr[covers->len++] = (jf_replacement_t){found.at, shown};
    }
  }
  return hold_from;
}

// ---- Putting in order ----

static bool precedes(jf_span_t a, jf_span_t b) { return a.start != b.start ? a.start < b.start : a.end > b.end; }

// By start, the longer first; where both are equal the order stays. `spare` has room for half of them.
static void sort(jf_replacement_t *covers, size_t count, jf_replacement_t *spare) {
  if (count < 2) return;
  size_t half = count / 2;
  sort(covers, half, spare);
  sort(covers + half, count - half, spare);
  memcpy(spare, covers, half * sizeof *covers);
  size_t left = 0, right = half;
  for (size_t to = 0; left < half; to++) {
    bool is_right_next = right < count && precedes(covers[right].at, spare[left].at);
    covers[to] = is_right_next ? covers[right++] : spare[left++];
  }
}

// Makes one of those that overlap: the text of the longer stands for both.
static void merge(covers_t *covers) {
  size_t merged = 0;
  for (size_t n = 0; n < covers->len; n++) {
    jf_replacement_t cover = covers->ptr[n], *last = merged > 0 ? &covers->ptr[merged - 1] : NULL;
    if (!last || cover.at.start >= last->at.end) {
      covers->ptr[merged++] = cover;
      continue;
    }
    if (cover.at.end - cover.at.start > last->at.end - last->at.start) last->text = cover.text;
    if (cover.at.end > last->at.end) last->at.end = cover.at.end;
  }
  covers->len = merged;
}

bool review_window(const rules_t *rules, const jf_window_t *window, jf_verdict_t *verdict, jf_string_t *err) {
  size_t most = window->hits.len + window->pending.len / LEAST_DIGITS;
  covers_t covers = {JF_NEW(jf_replacement_t, most), 0};
  if (!cover_hits(rules, window, &covers, err)) return false;
  size_t hold_from = cover_numbers(rules, window, &covers);
  sort(covers.ptr, covers.len, JF_NEW(jf_replacement_t, covers.len / 2));
  merge(&covers);
  while (covers.len > 0 && covers.ptr[covers.len - 1].at.start >= hold_from) covers.len--;
  // A pattern's match is as long as it will ever be: one that would be torn goes now.
  if (covers.len > 0 && tears(covers.ptr[covers.len - 1].at, hold_from)) hold_from = covers.ptr[covers.len - 1].at.end;
  verdict->replace = (jf_list_replacement_t){covers.ptr, covers.len};
  verdict->hold_bytes = window->pending.len - hold_from;
  return true;
}
