/* First and later flushes on hand-made events and markers. */
#include "fixture.h"

#include "explorer/judge/rules.h"
#include "explorer/model/flush.h"

/** A page begins a new life when it is initialised or freed; other markers and other pages do not touch it; one write ends it. */
static void test_lives_of_a_page(void **state)
{
    static const char *const BEGIN[] = {"page_init space=3 page=7 lsn=90",
                                        "page_free space=3 page=7 lsn=100"};
    page_set_t unwritten = {.slots = NULL};
    uint64_t page = marker_page("page_write space=3 page=7 lsn=90 type=index level=0");
    (void)state;
    assert_false(flush_is_first(&unwritten, page));
    for (uint32_t i = 0; i < 2; i++) {
        flush_mark(&unwritten, "page_init space=7 page=3 lsn=90");
        flush_mark(&unwritten, "page_noredo space=3 page=7 lsn=90");
        flush_mark(&unwritten, "page_initial space=3 page=7");
        assert_false(flush_is_first(&unwritten, page));
        flush_mark(&unwritten, BEGIN[i]);
        assert_true(flush_is_first(&unwritten, page));
        assert_false(flush_is_first(&unwritten, page));
    }
    page_set_clear(&unwritten);
    assert_false(flush_is_first(&unwritten, marker_page("page_write space=7 page=3")));
    page_set_free(&unwritten);
}

/** A write of the page, as recovery announces it. */
static bool recovery_writes(rules_t *rules)
{
    static const char PAGE[] = "page_write space=3 page=7 lsn=90 type=index level=0";
    fs_event_t event = {.kind = FS_WRITE, .offset = 28672, .length = 4096};
    rules_mark(rules, PAGE, strlen(PAGE));
    rules_event(rules, &event, "t1.ibd");
    return event.first_flush;
}

/** The same inside a recovery, where a page also begins a new life when its initialisation comes from the log. A
write that no marker announces is none of that page, and the next recovery knows nothing. */
static void test_lives_of_a_page_in_recovery(void **state)
{
    static const char *const BEGIN[] = {"page_init space=3 page=7 lsn=90",
                                        "page_free space=3 page=7 lsn=100",
                                        "recv_create space=3 page=7 init_lsn=90"};
    rules_t rules;
    verdict_t verdict = {.n = 0};
    (void)state;
    rules_init(&rules, true);
    rules_start(&rules, &verdict, 0);
    for (uint32_t i = 0; i < 3; i++) {
        fs_event_t event = {.kind = FS_WRITE, .length = 4096};
        assert_false(recovery_writes(&rules));
        rules_mark(&rules, BEGIN[i], strlen(BEGIN[i]));
        assert_true(recovery_writes(&rules));
        rules_event(&rules, &event, "t1.ibd");
        assert_false(event.first_flush);
    }
    rules_mark(&rules, BEGIN[0], strlen(BEGIN[0]));
    rules_start(&rules, &verdict, 0);
    assert_false(recovery_writes(&rules));
    rules_free(&rules);
}

/** Growing and removing loses and invents no page. */
static void test_many_pages(void **state)
{
    page_set_t set = {.slots = NULL};
    (void)state;
    for (uint64_t page = 1; page <= 5000; page++) {
        page_set_add(&set, page);
        page_set_add(&set, page);
        if (page % 3 == 0) {
            page_set_remove(&set, page);
        }
    }
    for (uint64_t page = 1; page <= 6000; page++) {
        assert_int_equal(page_set_has(&set, page), page <= 5000 && page % 3 != 0);
    }
    page_set_free(&set);
}

static void assert_first(const fs_list_t *list, const char *expected)
{
    for (uint32_t i = 0; i < list->n; i++) {
        assert_int_equal(list->events[i].first_flush, expected[i] == '1');
    }
    assert_int_equal(list->n, strlen(expected));
}

/** A write is a first flush where nothing was: beyond the end, over zeros, behind a truncation. What the markers
called one stays one, and the image comes back as it was. */
static void test_empty_places(void **state)
{
    image_t *image = image_create();
    fs_list_t list = {.events = NULL};
    (void)state;
    (void)image_inode_create(image);
    (void)image_inode_create(image);
    assert_true(image_write(image, 0, 512, "there", 5));
    uint64_t hash = image_hash(image);
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
    list.events[list.n - 1].first_flush = true; /* by its markers */
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
        cmocka_unit_test(test_lives_of_a_page),
        cmocka_unit_test(test_lives_of_a_page_in_recovery),
        cmocka_unit_test(test_many_pages),
        cmocka_unit_test(test_empty_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
