/** Files in memory for what ddl/ keeps in temporary files. */
#ifndef TEST_DDL_FIXTURE_H
#define TEST_DDL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "ddl/merge_sort.h"
#include "ddl/row_log.h"
#include "disk/image.h"

typedef struct fixture {
    os_t *os;
    probe_t probe;
    env_t env;
    row_log_t *log; /**< of the tests of the row log; NULL: none is there */
} fixture_t;

static inline int fixture_setup(void **state)
{
    fixture_t *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->os = image_os_create();
    f->env.os = f->os;
    f->env.probe = &f->probe;
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture_t *f = *state;
    row_log_free(f->log);
    os_destroy(f->os);
    free(f);
    return 0;
}

#endif
