/** Three writes that wait, and what is told of their sectors: for the tests of the models. */
#ifndef DISK_TESTS_MODELS_FIXTURE_H
#define DISK_TESTS_MODELS_FIXTURE_H

#include "fixture.h"

#include "disk/models.h"

#define LOG_SITE 3U /**< any number */

static const model_config_t CONFIG = {
    .enabled = MODELS_ALL, .sector = 512, .log_sites = 1U << LOG_SITE, .seed = 7};

/** Three waiting writes: 'a' one sector at 0, 'b' eight sectors at 4096, 'c' one sector at 0
again. */
static inline int models_setup(void **state)
{
    static persist_fixture_t f;
    f = (persist_fixture_t){.image = image_create()};
    (void)image_inode_create(f.image);
    image_link(f.image, name_of(f.image, "f"), 0);
    assert_true(image_truncate(f.image, 0, 8192));
    add_fill(&f.list, 0, 0, 512, 'a');
    add_fill(&f.list, 0, 4096, 4096, 'b');
    add_fill(&f.list, 0, 0, 512, 'c');
    for (uint32_t i = 0; i < f.list.n; i++) {
        f.list.events[i].old_size = 8192;
    }
    persist_init(&f.persist, &f.list, f.image, NULL);
    persist_advance(&f.persist, 3);
    *state = &f;
    return 0;
}

/** What a state is counted as, by hand from its sectors. */
static inline tear_t tear_of(const char *sectors, char kept)
{
    uint32_t changes = 0;
    for (uint32_t i = 1; sectors[i] != '\0'; i++) {
        changes += (sectors[i] == kept) != (sectors[i - 1] == kept);
    }
    return changes > 1          ? TEAR_INTERIOR
           : changes == 0       ? TEAR_DROPPED
           : sectors[0] == kept ? TEAR_PREFIX
                                : TEAR_SUFFIX;
}

#endif
