// A reader of JSON. What it is given was checked by the host; what is not JSON is refused all the same.

#include "jackfield.h"

enum kind { NUMBER, TEXT, TRUTH, ARRAY, OBJECT };

struct jf_json {
  enum kind kind;
  double number;
  bool truth;
  jf_string_t text;
  // Of arrays and objects; keys of objects stand beside their values.
  size_t count, room;
  const jf_json_t **values;
  jf_string_t *keys;
};

typedef struct {
  jf_string_t text;
  size_t at;
  int depth;
  bool failed;
} reader_t;

#define MAX_DEPTH 128

static const jf_json_t *read_value(reader_t *in);

static void skip_space(reader_t *in) {
  while (in->at < in->text.len) {
    uint8_t c = in->text.ptr[in->at];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    in->at++;
  }
}

static uint8_t peek(reader_t *in) { return in->at < in->text.len ? in->text.ptr[in->at] : 0; }

// Takes what is expected, white space before it left out.
static bool take(reader_t *in, const char *expected) {
  skip_space(in);
  jf_string_t word = jf_text(expected);
  if (!jf_starts_with(jf_slice(in->text, in->at, in->text.len), word)) return false;
  in->at += word.len;
  return true;
}

static const jf_json_t *fail(reader_t *in) {
  in->failed = true;
  return NULL;
}

static uint32_t read_hex(reader_t *in) {
  uint32_t code = 0;
  for (int n = 0; n < 4; n++) {
    uint8_t c = peek(in);
    uint8_t digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 16;
    if (digit == 16) fail(in);
    code = code << 4 | (digit & 15);
    in->at++;
  }
  return code;
}

static size_t read_escape(reader_t *in, uint8_t *to) {
  uint8_t c = peek(in);
  in->at++;
  switch (c) {
    case 'b': *to = '\b'; return 1;
    case 'f': *to = '\f'; return 1;
    case 'n': *to = '\n'; return 1;
    case 'r': *to = '\r'; return 1;
    case 't': *to = '\t'; return 1;
    case '"': case '\\': case '/': *to = c; return 1;
    case 'u': break;
    default: fail(in); return 0;
  }
  uint32_t code = read_hex(in);
  if (code >= 0xd800 && code < 0xdc00 && take(in, "\\u")) {
    uint32_t low = read_hex(in);
    code = 0x10000 + ((code - 0xd800) << 10 | ((low - 0xdc00) & 0x3ff));
  }
  // Half of a pair by itself is no scalar.
  if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
  return jf_encode(code, to);
}

// The text up to the closing quote. Never longer than what it was written as.
static jf_string_t read_text(reader_t *in) {
  size_t end = in->at;
  while (end < in->text.len && in->text.ptr[end] != '"') end += in->text.ptr[end] == '\\' ? 2 : 1;
  if (end >= in->text.len) {
    fail(in);
    return (jf_string_t){0};
  }
  jf_string_t text = {malloc(end - in->at), 0};
  if (!text.ptr) abort();
  while (in->at < end && !in->failed) {
    uint8_t c = in->text.ptr[in->at++];
    if (c == '\\') text.len += read_escape(in, text.ptr + text.len);
    else text.ptr[text.len++] = c;
  }
  in->at = end + 1;
  return text;
}

static double power_of_ten(int exponent) {
  double power = 1;
  for (; exponent > 0; exponent--) power *= 10;
  return power;
}

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

// Exact for up to 15 digits and 22 places; longer ones may be off in the last digit.
static double read_number(reader_t *in) {
  double value = 0;
  int exponent = 0;
  bool negative = take(in, "-");
  if (!is_digit(peek(in))) fail(in);
  for (; is_digit(peek(in)); in->at++) value = value * 10 + (peek(in) - '0');
  if (peek(in) == '.')
    for (in->at++; is_digit(peek(in)); in->at++, exponent--) value = value * 10 + (peek(in) - '0');
  if ((peek(in) | 32) == 'e') {
    in->at++;
    bool down = peek(in) == '-';
    if (down || peek(in) == '+') in->at++;
    int written = 0;
    for (; is_digit(peek(in)); in->at++) written = written < 1000 ? written * 10 + (peek(in) - '0') : written;
    exponent += down ? -written : written;
  }
  // Beyond these every number is 0 or too large.
  exponent = exponent > 400 ? 400 : exponent < -400 ? -400 : exponent;
  value = exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
  return negative ? -value : value;
}

static void push(jf_json_t *into, jf_string_t key, const jf_json_t *value) {
  if (into->count == into->room) {
    into->room = 2 * into->room + 4;
    into->values = realloc(into->values, into->room * sizeof *into->values);
    into->keys = realloc(into->keys, into->room * sizeof *into->keys);
    if (!into->values || !into->keys) abort();
  }
  into->keys[into->count] = key;
  into->values[into->count++] = value;
}

static void read_members(reader_t *in, jf_json_t *into, const char *close) {
  if (take(in, close)) return;
  do {
    jf_string_t key = {0};
    if (into->kind == OBJECT) {
      if (!take(in, "\"")) in->failed = true;
      key = read_text(in);
      if (!take(in, ":")) in->failed = true;
    }
    push(into, key, in->failed ? NULL : read_value(in));
  } while (!in->failed && take(in, ","));
  if (!take(in, close)) in->failed = true;
}

static const jf_json_t *read_value(reader_t *in) {
  if (take(in, "null")) return NULL;
  if (++in->depth > MAX_DEPTH) return fail(in);
  jf_json_t *value = JF_NEW(jf_json_t, 1);
  if (take(in, "{")) {
    value->kind = OBJECT;
    read_members(in, value, "}");
  } else if (take(in, "[")) {
    value->kind = ARRAY;
    read_members(in, value, "]");
  } else if (take(in, "\"")) {
    value->kind = TEXT;
    value->text = read_text(in);
  } else if (take(in, "true")) {
    value->kind = TRUTH;
    value->truth = true;
  } else if (take(in, "false")) {
    value->kind = TRUTH;
  } else {
    value->kind = NUMBER;
    value->number = read_number(in);
  }
  in->depth--;
  return in->failed ? NULL : value;
}

const jf_json_t *jf_json(jf_string_t text) {
  reader_t in = {text, 0, 0, false};
  const jf_json_t *value = read_value(&in);
  skip_space(&in);
  return in.failed || in.at != text.len ? NULL : value;
}

const jf_json_t *jf_get(const jf_json_t *object, const char *key) {
  if (!object || object->kind != OBJECT) return NULL;
  for (size_t n = object->count; n > 0; n--)
    if (jf_equal(object->keys[n - 1], jf_text(key))) return object->values[n - 1];
  return NULL;
}

size_t jf_count(const jf_json_t *array) { return array && array->kind == ARRAY ? array->count : 0; }

const jf_json_t *jf_at(const jf_json_t *array, size_t index) {
  return index < jf_count(array) ? array->values[index] : NULL;
}

jf_string_t jf_as_text(const jf_json_t *value) {
  return value && value->kind == TEXT ? value->text : (jf_string_t){0};
}

double jf_as_number(const jf_json_t *value, double otherwise) {
  return value && value->kind == NUMBER ? value->number : otherwise;
}

bool jf_as_bool(const jf_json_t *value, bool otherwise) {
  return value && value->kind == TRUTH ? value->truth : otherwise;
}

jf_texts_t jf_as_texts(const jf_json_t *array) {
  jf_texts_t texts = {JF_NEW(jf_string_t, jf_count(array)), jf_count(array)};
  for (size_t n = 0; n < texts.len; n++) texts.ptr[n] = jf_as_text(jf_at(array, n));
  return texts;
}
