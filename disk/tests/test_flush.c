/* First flushes of places that held nothing, on hand-made events. */
#include "fixture.h"

#include "disk/flush.h"

static void assert_first(const fs_list_t *list, const char *expected)
{
    for (uint32_t i = 0; i < list->n; i++) {
        assert_int_equal(list->events[i].first_flush, expected[i] == '1');
    }
    assert_int_equal(list->n, strlen(expected));
}

/** A write is a first flush where nothing was: beyond the end, over zeros, behind a truncation.
What the rules called one stays one, and the image comes back as it was. */
static void test_empty_places(void **state)
{
    image_t *image = image_create();
    (void)state;
    (void)image_inode_create(image);
    (void)image_inode_create(image);
    assert_true(image_write(image, 0, 512, "there", 5));
    uint64_t hash = image_hash(image);
    fs_list_t list = {.events = NULL};
    add_fill(&list, 0, 0, 512, 'a');    /* zeros before */
    add_fill(&list, 0, 512, 512, 'b');  /* something was there */
    add_fill(&list, 0, 1024, 512, 'c'); /* the end of the file */
    add_fill(&list, 0, 4096, 512, 'd'); /* beyond the end */
    add_fill(&list, 0, 1536, 512, 'e'); /* in the gap */
    add_fill(&list, 0, 0, 512, 'f');    /* over 'a' */
    add_fill(&list, 1, 0, 512, 'g');    /* another file */
    add_truncate(&list, 0, 1536);
    add_fill(&list, 0, 1024, 1024, 'h'); /* over 'c', and beyond the new end */
    add_fill(&list, 0, 4096, 512, 'i');  /* 'd' is gone */
    add_fill(&list, 0, 512, 512, 'j');
    list.events[list.n - 1].first_flush = true; /* by the rules */
    flush_mark_empty_places(&list, image);
    assert_first(&list, "10111010011");
    assert_int_equal(image_hash(image), hash);
    assert_int_equal(image_size(image, 0), 517);
    fs_list_free(&list);
    image_destroy(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
