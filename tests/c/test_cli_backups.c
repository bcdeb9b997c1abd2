/** Folders of a data directory that are named as backups are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

/** A folder whose name no backup can have is passed by. */
static void test_hidden_folder(void **state)
{
    (void)state;
    char dir[] = "test_cli_XXXXXX";
    char folder[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(folder, sizeof(folder), "%s/.x" BACKUP_FOLDER_SUFFIX, dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    const cli_args_t args = {.backups = true};
    cli_probe_t probe;
    err_sink_t err = {.msg = ""};
    os_t *os = NULL;
    cli_probe_init(&probe);
    assert_int_equal(os_posix_create(dir, false, &err, &os), DB_SUCCESS);
    uint32_t n_wrong = 0;
    json_t *backups = cli_backups_json(&args, os, &probe, &n_wrong);
    assert_int_equal(json_array_size(backups), 0);
    assert_int_equal(n_wrong, 0);
    json_decref(backups);
    os_destroy(os);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hidden_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
