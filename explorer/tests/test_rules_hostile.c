/* Hostile bytes: whatever lies in the files and is written to them, the judge ends, and reads
nothing that is not there. */
#include "scenario.h"

#include <stdlib.h>

#include "base/mach.h"
#include "disk/models.h"

/** What is in the file, with a bit flipped. @return length; its offset in *at */
static uint64_t flawed_bytes(world_t *w, stream_t *stream, const char *file, byte bytes[WORLD_PAGE],
                             uint64_t *at)
{
    uint32_t inode = image_lookup(w->image, image_name_find(w->image, file));
    uint64_t size = image_size(w->image, inode);
    *at = size < LOG_BLOCK_SIZE ? 0 : stream_below(stream, size / 512) * 512;
    uint64_t len = size - *at < WORLD_PAGE ? size - *at : WORLD_PAGE;
    image_read(w->image, inode, *at, bytes, len);
    bytes[stream_below(stream, WORLD_PAGE)] ^= (byte)(1U << stream_below(stream, 8));
    return len;
}

static void hostile_write(world_t *w, stream_t *stream, const char *file)
{
    byte bytes[WORLD_PAGE] = {0};
    uint64_t len = 1 + stream_below(stream, sizeof(bytes));
    uint64_t at = stream_below(stream, 4) == 0 ? stream_below(stream, 4096)
                                               : stream_below(stream, WORLD_LOG_BYTES);
    if (stream_below(stream, 2) == 0) {
        len = flawed_bytes(w, stream, file, bytes, &at);
    } else {
        for (uint32_t i = 0; i < sizeof(bytes); i += 8) {
            mach_write_8(bytes + i, stream_next(stream));
        }
    }
    world_write(w, file, at, bytes, len);
}

static void hostile_step(world_t *w, stream_t *stream)
{
    static const char *const FILES[] = {LOG_FILE, "ib_dblwr", "t.ibd"};
    const char *file = FILES[stream_below(stream, 3)];
    hostile_write(w, stream, file);
    if (stream_below(stream, 3) == 0) {
        world_sync(w, file);
    }
    if (stream_below(stream, 8) == 0) {
        world_restart(w, stream_below(stream, 2) == 0);
    }
    world_read(w, (uint32_t)stream_below(stream, 100));
}

static void test_hostile_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        stream_t stream = {.state = seed};
        world_t *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        world_begin(w, true);
        scenario_log_around(w);
        (void)scenario_init_and_free(w);
        for (uint32_t step = 0; step < 60; step++) {
            hostile_step(w, &stream);
        }
        world_end(w);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
