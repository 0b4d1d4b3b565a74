/* Reads JSON texts in place. See `json.h`. */
#include "json.h"

#include <stdlib.h>
#include <string.h>

static size_t space(wf_text_t json, size_t at) {
  while (at < json.len && (json.ptr[at] == ' ' || json.ptr[at] == '\t' || json.ptr[at] == '\n' || json.ptr[at] == '\r')) at++;
  return at;
}

/* The end of the string that begins at `at`. */
static size_t string_end(wf_text_t json, size_t at) {
  for (at++; at < json.len && json.ptr[at] != '"'; at++)
    if (json.ptr[at] == '\\') at++;
  return at < json.len ? at + 1 : json.len;
}

/* The end of the value that begins at `at`. */
static size_t value_end(wf_text_t json, size_t at) {
  size_t depth = 0;
  while (at < json.len) {
    uint8_t c = json.ptr[at];
    if (depth == 0 && (c == ',' || c == '}' || c == ']' || c == ':')) return at;
    if (c == '"') {
      at = string_end(json, at);
    } else {
      if (c == '{' || c == '[') depth++;
      if (c == '}' || c == ']') depth--;
      at++;
    }
    if (depth == 0 && (c == '"' || c == '}' || c == ']')) return at;
  }
  return at;
}

static wf_text_t part(wf_text_t json, size_t from, size_t to) {
  while (to > from && space(json, to - 1) != to - 1) to--;
  return (wf_text_t){json.ptr + from, to - from};
}

bool wf_each(wf_text_t json, size_t *cursor, wf_text_t *name, wf_text_t *value) {
  size_t at = *cursor == 0 ? space(json, 0) : *cursor;
  if (*cursor == 0) {
    if (at >= json.len || (json.ptr[at] != '{' && json.ptr[at] != '[')) return false;
    at++;
  }
  at = space(json, at);
  if (at < json.len && json.ptr[at] == ',') at = space(json, at + 1);
  if (at >= json.len || json.ptr[at] == '}' || json.ptr[at] == ']') return false;
  size_t end = value_end(json, at);
  *name = (wf_text_t){NULL, 0};
  size_t after = space(json, end);
  if (after < json.len && json.ptr[after] == ':') {
    *name = wf_string(part(json, at, end));
    at = space(json, after + 1);
    end = value_end(json, at);
  }
  *value = part(json, at, end);
  *cursor = end;
  return true;
}

static size_t number_of(const char *digits, size_t length) {
  size_t number = 0;
  for (size_t i = 0; i < length; i++) {
    if (digits[i] < '0' || digits[i] > '9') return SIZE_MAX;
    number = number * 10 + (size_t)(digits[i] - '0');
  }
  return number;
}

wf_text_t wf_find(wf_text_t json, const char *pointer) {
  wf_text_t none = {NULL, 0};
  json = part(json, space(json, 0), json.len);
  while (*pointer == '/') {
    const char *step = ++pointer;
    while (*pointer != 0 && *pointer != '/') pointer++;
    size_t length = (size_t)(pointer - step), cursor = 0, index = 0;
    bool is_object = json.len > 0 && json.ptr[0] == '{', found = false;
    wf_text_t name, value;
    while (!found && wf_each(json, &cursor, &name, &value)) {
      found = is_object ? name.len == length && memcmp(name.ptr, step, length) == 0 : index == number_of(step, length);
      index++;
    }
    if (!found) return none;
    json = value;
  }
  return json;
}

static unsigned hex(const uint8_t *digits) {
  unsigned value = 0;
  for (int i = 0; i < 4; i++) {
    uint8_t c = digits[i];
    value = value * 16 + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10u);
  }
  return value;
}

/* Writes the code point, and returns how many bytes it took. */
static size_t utf8(uint8_t *to, unsigned c) {
  size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const uint8_t marks[] = {0, 0xC0, 0xE0, 0xF0};
  to[0] = (uint8_t)(marks[more] | c >> (6 * more));
  for (size_t i = 1; i <= more; i++) to[i] = (uint8_t)(0x80 | (c >> (6 * (more - i)) & 63));
  return more + 1;
}

wf_text_t wf_string(wf_text_t value) {
  if (value.len < 2 || value.ptr[0] != '"') return (wf_text_t){NULL, 0};
  /* No escape sequence is shorter than its decoded form. */
  uint8_t *text = malloc(value.len);
  size_t length = 0;
  for (size_t i = 1; i + 1 < value.len; i++) {
    uint8_t c = value.ptr[i];
    if (c != '\\') {
      text[length++] = c;
      continue;
    }
    c = value.ptr[++i];
    if (c != 'u') {
      text[length++] = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c;
      continue;
    }
    if (i + 4 >= value.len) break;
    unsigned unit = hex(value.ptr + i + 1);
    i += 4;
    if (unit >= 0xD800 && unit < 0xDC00 && i + 6 < value.len) {
      unit = 0x10000 + ((unit - 0xD800) << 10) + (hex(value.ptr + i + 3) - 0xDC00);
      i += 6;
    }
    length += utf8(text + length, unit);
  }
  return (wf_text_t){text, length};
}

bool wf_true(wf_text_t value) { return value.len == 4 && memcmp(value.ptr, "true", 4) == 0; }

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

/* Appends a digit to the number; the result is at most `most`. */
static uint64_t with_digit(uint64_t number, uint64_t digit, uint64_t most) {
  return number > (most - digit) / 10 ? most : number * 10 + digit;
}

/* Reads the exponent at `at`, if there is one. False if there is something else. */
static bool read_exponent(wf_text_t value, size_t at, int64_t *exponent) {
  if (at == value.len) return true;
  if (value.ptr[at] != 'e' && value.ptr[at] != 'E') return false;
  bool negative = ++at < value.len && value.ptr[at] == '-';
  if (at < value.len && (value.ptr[at] == '-' || value.ptr[at] == '+')) at++;
  if (at == value.len) return false;
  uint64_t number = 0;
  for (; at < value.len; at++) {
    if (!is_digit(value.ptr[at])) return false;
    number = with_digit(number, value.ptr[at] - '0', INT32_MAX);
  }
  *exponent = negative ? -(int64_t)number : (int64_t)number;
  return true;
}

int64_t wf_integer(wf_text_t value, int64_t otherwise) {
  bool negative = value.len > 0 && value.ptr[0] == '-', is_fraction = false;
  uint64_t number = 0, most = (uint64_t)INT64_MAX + negative;
  /* The number of digits before the decimal point after the exponent is applied. */
  int64_t whole = 0, exponent = 0;
  size_t first = negative, end = first;
  for (; end < value.len && (is_digit(value.ptr[end]) || value.ptr[end] == '.'); end++) {
    if (value.ptr[end] == '.') is_fraction = true;
    whole += !is_fraction;
  }
  if (whole == 0 || !read_exponent(value, end, &exponent)) return otherwise;
  whole += exponent;
  for (size_t i = first; i < end; i++) {
    if (value.ptr[i] == '.') continue;
    uint8_t digit = value.ptr[i] - '0';
    if (whole-- > 0) number = with_digit(number, digit, most);
    else if (digit != 0) return otherwise;
  }
  for (; whole > 0 && number > 0 && number < most; whole--) number = with_digit(number, 0, most);
  if (number > INT64_MAX) return INT64_MIN;
  return negative ? -(int64_t)number : (int64_t)number;
}

wf_text_t wf_quoted(wf_text_t text) {
  static const char digits[] = "0123456789abcdef";
  uint8_t *json = malloc(text.len * 6 + 2);
  size_t length = 0;
  json[length++] = '"';
  for (size_t i = 0; i < text.len; i++) {
    uint8_t c = text.ptr[i];
    if (c == '"' || c == '\\') {
      json[length++] = '\\', json[length++] = c;
    } else if (c < 0x20) {
      memcpy(json + length, "\\u00", 4);
      json[length + 4] = (uint8_t)digits[c >> 4], json[length + 5] = (uint8_t)digits[c & 15], length += 6;
    } else {
      json[length++] = c;
    }
  }
  json[length++] = '"';
  return (wf_text_t){json, length};
}
