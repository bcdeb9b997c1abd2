/** Tables of an engine on an image. */
#ifndef EXPLORER_TESTS_ENGINE_FIXTURE_H
#define EXPLORER_TESTS_ENGINE_FIXTURE_H

#include <stdio.h>

#include "api/engine.h"
#include "disk/image.h"
#include "disk/tests/fixture.h"

static inline engine_t *open_engine_on(image_t *image, probe_t *probe,
                                       const engine_options_t *options)
{
    engine_t *engine = NULL;
    err_sink_t err = {.msg = ""};
    assert_int_equal(engine_open(image_os(image), probe, options, true, &engine, &err), DB_SUCCESS);
    return engine;
}

/** A table of a BIGINT, its key, and a column b of this type. */
static inline void create_table_of_two(engine_t *engine, const char *name, dict_type_t type,
                                       uint32_t len)
{
    dict_table_t made = {.n_cols = 2,
                         .cols = {{.name = "a", .type = DICT_BIGINT, .len = 8},
                                  {.name = "b", .type = type, .len = len}},
                         .n_indexes = 1};
    (void)snprintf(made.name, sizeof(made.name), "%s", name);
    made.indexes[0].n_fields = 1;
    made.indexes[0].fields[0] = (dict_field_t){.col = 0, .prefix_len = 8};
    assert_int_equal(engine_create_table(engine, &made), DB_SUCCESS);
}

#endif
