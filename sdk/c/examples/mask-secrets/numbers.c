#include "numbers.h"

// The longest number of digits of any secret.
#define MOST_DIGITS 19

// Groups of a run side by side, taken for one number.
typedef struct {
  const group_t *groups;
  size_t count;
  jf_string_t digits;
  jf_span_t at;
  // Where the x directly after the last digit ends; 0 for none.
  size_t x_end;
} reading_t;

static reading_t read_groups(const run_t *run, size_t from, size_t count) {
  const group_t *first = &run->groups[from], *last = first + count - 1;
  return (reading_t){
      .groups = first,
      .count = count,
      .digits = jf_slice(run->digits.text, first->digits.start, last->digits.end),
      .at = {first->at.start, last->at.end},
      .x_end = from + count == run->group_count ? run->x_end : 0,
  };
}

static size_t size_of(const group_t *group) { return group->digits.end - group->digits.start; }

static uint32_t number_in(jf_string_t digits, size_t start, size_t end) {
  uint32_t number = 0;
  for (size_t n = start; n < end; n++) number = number * 10 + (digits.ptr[n] - '0');
  return number;
}

// ---- Identity numbers ----

static bool is_date_of_birth(jf_string_t digits) {
  uint32_t year = number_in(digits, 0, 4), month = number_in(digits, 4, 6), day = number_in(digits, 6, 8);
  bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  bool is_short = month == 4 || month == 6 || month == 9 || month == 11;
  uint32_t days = month == 2 ? 28 + is_leap : is_short ? 30 : 31;
  return year >= 1850 && year <= 2149 && month >= 1 && month <= 12 && day >= 1 && day <= days;
}

// Six digits for the place, eight for the date of birth, three, and a check character (ISO 7064, MOD 11-2), which may be an
// x.
static bool is_resident_id(const reading_t *read) {
  jf_string_t digits = read->digits;
  if (digits.len != 18 && (digits.len != 17 || read->x_end == 0)) return false;
  uint32_t check = digits.len == 18 ? digits.ptr[17] - '0' : 10, sum = 0;
  for (size_t n = 0; n < 17; n++) sum += (digits.ptr[n] - '0') * ((1u << (17 - n)) % 11);
  return (12 - sum % 11) % 11 == check && digits.ptr[0] != '0' && is_date_of_birth(jf_slice(digits, 6, 14));
}

static found_t resident_id(const reading_t *read) {
  if (read->digits.len == 18) return (found_t){RESIDENT_ID, read->at, read->digits};
  jf_writer_t counting = {0};
  jf_put(&counting, read->digits);
  jf_put_literal(&counting, "X");
  return (found_t){RESIDENT_ID, {read->at.start, read->x_end}, counting.text};
}

// ---- Cards ----

// Cards are written in groups of the same size (4 4 4 4), or in a few long ones (4 6 5). Two dates in a row are not.
static bool has_card_shape(const reading_t *read) {
  bool are_same = true, are_long = true;
  for (size_t n = 0; n + 1 < read->count; n++) {
    are_same = are_same && size_of(&read->groups[n]) == size_of(&read->groups[0]);
    are_long = are_long && size_of(&read->groups[n]) >= 3;
  }
  return are_same || are_long;
}

static bool is_all_zeros(jf_string_t digits) {
  for (size_t n = 0; n < digits.len; n++)
    if (digits.ptr[n] != '0') return false;
  return true;
}

// The check digit of cards (ISO/IEC 7812).
static bool luhn(jf_string_t digits) {
  uint32_t sum = 0;
  for (size_t n = 0; n < digits.len; n++) {
    uint32_t digit = digits.ptr[digits.len - 1 - n] - '0';
    sum += n % 2 == 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2;
  }
  return sum % 10 == 0;
}

// Numbers of digits as a set, so that a row of `ISSUED` can name any of them.
#define DIGITS(n) (1u << (n))
#define FROM_13 (DIGITS(13) | FROM_14)
#define FROM_14 (DIGITS(14) | DIGITS(15) | FROM_16)
#define FROM_16 (DIGITS(16) | DIGITS(17) | DIGITS(18) | DIGITS(19))

// First and last prefix of four digits, and the lengths in which its cards are issued.
static const struct { uint32_t first, last, lengths; } ISSUED[] = {
    {2200, 2204, FROM_16},                                           // Mir
    {2221, 2720, DIGITS(16)},                                        // Mastercard
    {3000, 3059, FROM_14},                                           // Diners Club
    {3095, 3095, FROM_14},                                           // Diners Club
    {3400, 3499, DIGITS(15)},                                        // American Express
    {3528, 3589, FROM_16},                                           // JCB
    {3600, 3699, FROM_14},                                           // Diners Club
    {3700, 3799, DIGITS(15)},                                        // American Express
    {3800, 3999, FROM_14},                                           // Diners Club
    {4000, 4999, DIGITS(13) | DIGITS(16) | DIGITS(18) | DIGITS(19)}, // Visa
    {5000, 5999, FROM_13},                                           // Mastercard, Maestro
    {6000, 6999, FROM_13},                                           // UnionPay 62, Discover, RuPay, Maestro
    {8100, 8199, FROM_16},                                           // UnionPay
    {9558, 9558, FROM_16},                                           // ICBC, issued before UnionPay
};

static bool is_issued(jf_string_t digits) {
  uint32_t prefix = number_in(digits, 0, 4);
  for (size_t n = 0; n < sizeof ISSUED / sizeof *ISSUED; n++) {
    bool begins_so = ISSUED[n].first <= prefix && prefix <= ISSUED[n].last;
    if (begins_so && ISSUED[n].lengths & DIGITS(digits.len)) return true;
  }
  return false;
}

static bool is_card(const reading_t *read, bool known_issuers_only) {
  jf_string_t digits = read->digits;
  return digits.len >= 13 && digits.len <= MOST_DIGITS && has_card_shape(read) && !is_all_zeros(digits) && luhn(digits) &&
         (!known_issuers_only || is_issued(digits));
}

// ---- Phones ----

// Whether there are eleven digits behind the country's prefix, or without one.
static bool has_mobile_length(jf_string_t digits) {
  switch (digits.len) {
    case 11: return true;
    case 13: return jf_starts_with(digits, jf_text("86"));
    case 15: return jf_starts_with(digits, jf_text("0086"));
    default: return false;
  }
}

// Eleven digits from 13 to 19, perhaps after 86 or 0086. The first group is not shorter than the prefix of a network, so
// that a date and a time do not become a phone.
static bool is_chinese_mobile(const reading_t *read) {
  if (!has_mobile_length(read->digits)) return false;
  size_t prefix = read->digits.len - 11, first = size_of(&read->groups[0]);
  bool prefix_stands_alone = prefix > 0 && first == prefix && read->count > 1 && size_of(&read->groups[1]) >= 3;
  const uint8_t *number = read->digits.ptr + prefix;
  return number[0] == '1' && number[1] >= '3' && (first >= prefix + 3 || prefix_stands_alone);
}

// The groups from the left that make a plus sign and 7 to 15 digits, as many as there are; for China exactly its eleven.
static size_t international_groups(const run_t *run) {
  size_t most = jf_starts_with(run->digits.text, jf_text("86")) ? 13 : 15, best = 0;
  for (size_t n = 0; n < run->group_count && run->groups[n].digits.end <= most; n++)
    if (run->groups[n].digits.end >= 7) best = n + 1;
  return best;
}

// ---- All of them ----

// What this reading is; false for no secret. `start` is where a phone begins, which a plus sign may be part of.
static bool judge(const reading_t *read, size_t start, const wanted_t *wanted, found_t *found) {
  if (wanted->resident_id && is_resident_id(read)) *found = resident_id(read);
  else if (wanted->cards && is_card(read, wanted->known_issuers_only)) *found = (found_t){CARD, read->at, read->digits};
  else if (wanted->chinese_mobile && is_chinese_mobile(read)) *found = (found_t){PHONE, {start, read->at.end}, read->digits};
  else return false;
  return true;
}

// How many groups from here on are not too many digits for a secret.
static size_t fitting_groups(const run_t *run, size_t from) {
  size_t count = 0, first = run->groups[from].digits.start;
  while (from + count < run->group_count && run->groups[from + count].digits.end - first <= MOST_DIGITS) count++;
  return count;
}

// The secret that begins with this group: of how many groups it is. 0 for none.
static size_t secret_at(const run_t *run, size_t from, const wanted_t *wanted, found_t *found) {
  size_t groups = from == 0 && run->has_plus && wanted->international ? international_groups(run) : 0;
  if (groups > 0) {
    reading_t read = read_groups(run, from, groups);
    *found = (found_t){PHONE, {run->start, read.at.end}, read.digits};
    return groups;
  }
  size_t start = from == 0 ? run->start : run->groups[from].at.start;
  for (groups = fitting_groups(run, from); groups > 0; groups--) {
    reading_t read = read_groups(run, from, groups);
    if (judge(&read, start, wanted, found)) break;
  }
  return groups;
}

bool next_secret(const run_t *run, const wanted_t *wanted, size_t *from, found_t *found) {
  for (; *from < run->group_count; ++*from) {
    size_t groups = secret_at(run, *from, wanted, found);
    if (groups == 0) continue;
    *from += groups;
    return true;
  }
  return false;
}
