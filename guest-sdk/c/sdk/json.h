/* Reads JSON texts in place: a value is a slice of the text. The host has checked that the texts are JSON. */
#ifndef WRKFLW_JSON_H
#define WRKFLW_JSON_H
#include "flow.h"

typedef flow_string_t wf_text_t;

/* The value at a JSON Pointer, such as "/supplier/name". Its length is 0 if there is none. A `~` in a pointer is not supported. */
wf_text_t wf_find(wf_text_t json, const char *pointer);
/* The decoded text of a JSON string. Its length is 0 if the value is no string. */
wf_text_t wf_string(wf_text_t value);
/* Whether the value is `true`. */
bool wf_true(wf_text_t value);
/* A whole number, also as `5000.0` or `5e3`. `otherwise` if the value is none. A number that does not fit is INT64_MAX or INT64_MIN. */
int64_t wf_integer(wf_text_t value, int64_t otherwise);
/* Reads the member or item at the cursor, which begins at 0: the name (of an object's member) and the value. False at the end. */
bool wf_each(wf_text_t json, size_t *cursor, wf_text_t *name, wf_text_t *value);
/* The text as a JSON string, with quotes. */
wf_text_t wf_quoted(wf_text_t text);
#endif
