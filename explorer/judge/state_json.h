/** States as programs write them, in JSON. */
#ifndef EXPLORER_STATE_JSON_H
#define EXPLORER_STATE_JSON_H

#include <jansson.h>

#include "check/check.h"

/** Tables with their digests: [{"name", "rows", "hash", "indexes": [{"name", "entries", "hash"}]},
...], as the scanner and the model write them. The caller frees *tables. @return false: it is not
that */
bool state_json_tables(const json_t *array, check_table_t **tables, uint32_t *n);

/** Of a target that computes no digests, texts by name: each is a table whose hash is XXH64 of the
bytes, a row is a line. harness/tornpage/oracle/observed.py computes the same. The caller frees
*tables.
@return false: it is no object of texts */
bool state_json_texts(const json_t *state, check_table_t **tables, uint32_t *n);

#endif
