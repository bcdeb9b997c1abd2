/* Properties of os/: both back ends behave alike, and the poison rule. Each test runs on the
simulated disk and, in a directory of its own below the working directory, on POSIX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/image.h"
#include "os/os.h"

typedef struct fixture {
    probe_t probe;
    env_t env;
    char dir[32]; /* "" on the simulated disk */
} fixture_t;

static int setup_disk(void **state)
{
    fixture_t *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->env.probe = &f->probe;
    f->env.os = image_os_create();
    *state = f;
    return 0;
}

static int setup_posix(void **state)
{
    fixture_t *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->env.probe = &f->probe;
    strcpy(f->dir, "/tmp/test_os_XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(os_posix_create(f->dir, false, &f->env.err, &f->env.os), DB_SUCCESS);
    *state = f;
    return 0;
}

static dberr_t remove_file(void *ctx, const char *name)
{
    fixture_t *f = ctx;
    char path[600];

    (void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_int_equal(remove(path), 0);
    return DB_SUCCESS;
}

static int teardown(void **state)
{
    fixture_t *f = *state;

    if (f->dir[0] != '\0') {
        assert_int_equal(env_list(&f->env, remove_file, f), DB_SUCCESS);
        assert_int_equal(rmdir(f->dir), 0);
    }
    os_destroy(f->env.os);
    free(f);
    return 0;
}

static void put(env_t *env, const char *path, const char *text)
{
    os_file_t *file;

    assert_int_equal(env_open(env, path, OS_CREATE_TRUNC, &file), DB_SUCCESS);
    assert_int_equal(env_write(env, file, 0, text, strlen(text)), DB_SUCCESS);
    assert_int_equal(env_sync(env, file), DB_SUCCESS);
    env_close(env, file);
}

static void assert_content(env_t *env, const char *path, const char *text)
{
    os_file_t *file;

    assert_int_equal(env_open(env, path, OS_OPEN, &file), DB_SUCCESS);
    char buf[100] = "";
    size_t n = 0;
    assert_int_equal(env_read(env, file, 0, buf, sizeof(buf) - 1, &n), DB_SUCCESS);
    env_close(env, file);
    assert_string_equal(buf, text);
    assert_int_equal(n, strlen(text));
}

/* A read at or past the end gives what is there; a write past the end leaves zeros between. */
static void test_read_write(void **state)
{
    env_t *env = &((fixture_t *)*state)->env;
    os_file_t *file;

    assert_int_equal(env_open(env, "f", OS_CREATE_NEW, &file), DB_SUCCESS);
    assert_int_equal(env_write(env, file, 4, "abcd", 4), DB_SUCCESS);
    byte buf[16];
    memset(buf, 'x', sizeof(buf));
    size_t n = 99;
    assert_int_equal(env_read(env, file, 0, buf, sizeof(buf), &n), DB_SUCCESS);
    assert_int_equal(n, 8);
    assert_memory_equal(buf, "\0\0\0\0abcd", 8);
    assert_int_equal(env_read(env, file, 8, buf, 1, &n), DB_SUCCESS);
    assert_int_equal(n, 0);
    assert_int_equal(env_read(env, file, 5000, buf, 1, &n), DB_SUCCESS);
    assert_int_equal(n, 0);
    assert_int_equal(env_truncate(env, file, 6), DB_SUCCESS);
    assert_int_equal(env_truncate(env, file, 10), DB_SUCCESS);
    assert_int_equal(env_read(env, file, 0, buf, sizeof(buf), &n), DB_SUCCESS);
    assert_int_equal(n, 10);
    assert_memory_equal(buf, "\0\0\0\0ab\0\0\0\0", 10);
    uint64_t size = 0;
    assert_int_equal(env_size(env, file, &size), DB_SUCCESS);
    assert_int_equal(size, 10);
    env_close(env, file);
}

/* A hole reads as zeros, and the file is as long as before. */
static void test_punch(void **state)
{
    env_t *env = &((fixture_t *)*state)->env;
    byte buf[16384];
    memset(buf, 'x', sizeof(buf));
    os_file_t *file;
    assert_int_equal(env_open(env, "f", OS_CREATE_NEW, &file), DB_SUCCESS);
    assert_int_equal(env_write(env, file, 0, buf, sizeof(buf)), DB_SUCCESS);
    bool done = false;
    assert_int_equal(env_punch(env, file, 1024, sizeof(buf) - 1024, &done), DB_SUCCESS);
    size_t n = 0;
    assert_int_equal(env_read(env, file, 0, buf, sizeof(buf), &n), DB_SUCCESS);
    assert_int_equal(n, sizeof(buf));
    assert_int_equal(buf[1023], 'x');
    for (size_t i = 1024; done && i < sizeof(buf); i++) {
        assert_int_equal(buf[i], 0);
    }
    env_close(env, file);
}

/* The three modes of opening, and their refusals, which do not poison. */
static void test_open_modes(void **state)
{
    env_t *env = &((fixture_t *)*state)->env;
    os_file_t *file;

    assert_int_equal(env_open(env, "f", OS_OPEN, &file), DB_NOT_FOUND);
    put(env, "f", "hello");
    assert_int_equal(env_open(env, "f", OS_CREATE_NEW, &file), DB_ALREADY_EXISTS);
    assert_non_null(strstr(env->err.msg, "f:"));
    assert_content(env, "f", "hello");
    assert_int_equal(env_open(env, "f", OS_CREATE_TRUNC, &file), DB_SUCCESS);
    env_close(env, file);
    assert_content(env, "f", "");
    assert_false(env->io_failed);
}

/* Rename replaces; unlink of a missing file is DB_NOT_FOUND and does not poison; an open handle
keeps an unlinked file alive. */
static void test_rename_unlink(void **state)
{
    env_t *env = &((fixture_t *)*state)->env;
    put(env, "a", "one");
    put(env, "b", "two");
    os_file_t *file;
    assert_int_equal(env_open(env, "b", OS_OPEN, &file), DB_SUCCESS);
    assert_int_equal(env_rename(env, "a", "b"), DB_SUCCESS);
    assert_int_equal(env_sync_dir(env), DB_SUCCESS);
    assert_content(env, "b", "one");
    char buf[4] = "";
    size_t n = 0;
    assert_int_equal(env_read(env, file, 0, buf, 3, &n), DB_SUCCESS);
    assert_string_equal(buf, "two");
    env_close(env, file);
    bool exists = true;
    assert_int_equal(env_exists(env, "a", &exists), DB_SUCCESS);
    assert_false(exists);
    assert_int_equal(env_unlink(env, "a"), DB_NOT_FOUND);
    assert_int_equal(env_unlink(env, "b"), DB_SUCCESS);
    assert_int_equal(env_exists(env, "b", &exists), DB_SUCCESS);
    assert_false(exists);
    assert_false(env->io_failed);
}

static dberr_t join_names(void *ctx, const char *name)
{
    strcat(ctx, name);
    strcat(ctx, ",");
    return DB_SUCCESS;
}

static dberr_t stop_at_once(void *ctx, const char *name)
{
    (void)name;
    ++*(int *)ctx;
    return DB_INTERRUPTED;
}

/* The listing is sorted by bytes, shows a directory as one entry, and ends when the callback says
so; a directory is gone with its last file. */
static void test_list(void **state)
{
    env_t *env = &((fixture_t *)*state)->env;
    put(env, "t/b", "x");
    put(env, "t/a", "x");
    put(env, "t.ibd", "x");
    put(env, "B", "x");
    put(env, "a", "x");
    char names[200] = "";
    assert_int_equal(env_list(env, join_names, names), DB_SUCCESS);
    assert_string_equal(names, "B,a,t,t.ibd,");
    int calls = 0;
    assert_int_equal(env_list(env, stop_at_once, &calls), DB_INTERRUPTED);
    assert_int_equal(calls, 1);
    assert_int_equal(env_unlink(env, "t/a"), DB_SUCCESS);
    assert_int_equal(env_unlink(env, "t/b"), DB_SUCCESS);
    names[0] = '\0';
    assert_int_equal(env_list(env, join_names, names), DB_SUCCESS);
    assert_string_equal(names, "B,a,t.ibd,");
}

/* No path leads out of the directory, whoever asks for it. */
static void test_paths(void **state)
{
    static const char *const BAD[] = {"",     ".",     "..", "/etc/passwd", "../x", "a/../b",
                                      "a/..", "a/b/c", "a/", "a//b",        "/",    "a/."};
    env_t *env = &((fixture_t *)*state)->env;
    bool exists;
    os_file_t *file;

    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        assert_int_equal(env_open(env, BAD[i], OS_CREATE_TRUNC, &file), DB_CORRUPTION);
        assert_int_equal(env_unlink(env, BAD[i]), DB_CORRUPTION);
        assert_int_equal(env_rename(env, "a", BAD[i]), DB_CORRUPTION);
        assert_int_equal(env_exists(env, BAD[i], &exists), DB_CORRUPTION);
    }
    char longest[PATH_LEN_MAX + 2];
    memset(longest, 'n', sizeof(longest));
    longest[PATH_LEN_MAX + 1] = '\0';
    assert_int_equal(env_open(env, longest, OS_OPEN, &file), DB_CORRUPTION);
    longest[PATH_LEN_MAX] = '\0';
    assert_int_equal(env_open(env, longest, OS_OPEN, &file), DB_NOT_FOUND);
    assert_false(os_path_is_valid("a\0b", 3));
    assert_false(env->io_failed);
}

/* The lock excludes a second handle until it is released. */
static dberr_t count_entry(void *ctx, const char *name)
{
    assert_int_equal(strcmp(name, "b"), 0);
    ++*(int *)ctx;
    return DB_SUCCESS;
}

/** A folder is a directory of its own: every operation of it, and what the directory around it has
then. */
static void test_folder(void **state)
{
    fixture_t *f = *state;
    probe_t probe = {.point = NULL};
    env_t env = {.probe = &probe};
    assert_int_equal(os_folder_create(f->env.os, "d", &env.os), DB_SUCCESS);
    int n = 0;
    assert_int_equal(env_list(&env, count_entry, &n), DB_SUCCESS);
    assert_int_equal(n, 0);
    os_file_t *file = NULL;
    assert_int_equal(env_open(&env, "a", OS_OPEN, &file), DB_NOT_FOUND);
    assert_int_equal(env_open(&env, "a/b", OS_CREATE_NEW, &file), DB_IO_ERROR);
    env.io_failed = false;
    assert_int_equal(env_open(&env, "a", OS_CREATE_NEW, &file), DB_SUCCESS);
    char text[5] = "";
    assert_int_equal(env_write(&env, file, 0, "text", 4), DB_SUCCESS);
    assert_int_equal(env_truncate(&env, file, 8192), DB_SUCCESS);
    bool done = false;
    assert_int_equal(env_punch(&env, file, 4096, 4096, &done), DB_SUCCESS);
    assert_int_equal(env_sync(&env, file), DB_SUCCESS);
    uint64_t size = 0;
    assert_int_equal(env_size(&env, file, &size), DB_SUCCESS);
    assert_int_equal(size, 8192);
    env_close(&env, file);
    assert_int_equal(env_rename(&env, "a", "b"), DB_SUCCESS);
    assert_int_equal(env_sync_dir(&env), DB_SUCCESS);
    assert_int_equal(env_list(&env, count_entry, &n), DB_SUCCESS);
    assert_int_equal(n, 1);
    assert_int_equal(env_open(&f->env, "d/b", OS_OPEN, &file), DB_SUCCESS);
    size_t n_read = 0;
    assert_int_equal(env_read(&f->env, file, 0, text, 4, &n_read), DB_SUCCESS);
    assert_string_equal(text, "text");
    env_close(&f->env, file);
    assert_int_equal(env_lock(&env), DB_SUCCESS);
    assert_int_equal(env_lock(&env), DB_DIR_LOCKED);
    env_unlock(&env);
    assert_int_equal(env_unlink(&env, "b"), DB_SUCCESS);
    bool there = true;
    assert_int_equal(env_exists(&f->env, "d/b", &there), DB_SUCCESS);
    assert_false(there);
    os_destroy(env.os);
}

static void test_lock(void **state)
{
    fixture_t *f = *state;
    env_t other = f->env;

    if (f->dir[0] != '\0') {
        assert_int_equal(os_posix_create(f->dir, false, &other.err, &other.os), DB_SUCCESS);
    }
    assert_int_equal(env_lock(&f->env), DB_SUCCESS);
    assert_int_equal(env_lock(&f->env), DB_DIR_LOCKED);
    assert_int_equal(env_lock(&other), DB_DIR_LOCKED);
    env_unlock(&f->env);
    assert_int_equal(env_lock(&other), DB_SUCCESS);
    assert_int_equal(env_lock(&f->env), DB_DIR_LOCKED);
    if (f->dir[0] != '\0') {
        os_destroy(other.os);
        assert_int_equal(env_lock(&f->env), DB_SUCCESS);
    }
    env_unlock(&f->env);
}

static dberr_t fail_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    (void)offset;
    (void)buf;
    (void)len;
    file->os->last_errno = 28;
    return DB_IO_ERROR;
}

static dberr_t fail_sync(os_file_t *file)
{
    file->os->last_errno = 5;
    return DB_IO_ERROR;
}

/* (I23) After a failed write or fsync every change is refused, even when the system would take it
again; reading goes on. */
static void test_poison(void **state)
{
    env_t *env = &((fixture_t *)*state)->env;
    const os_vtable_t *real = env->os->vt;

    for (int what = 0; what < 2; what++) {
        os_vtable_t broken = *real;
        put(env, "f", "data");
        put(env, "g", "data");
        os_file_t *file;
        assert_int_equal(env_open(env, "f", OS_OPEN, &file), DB_SUCCESS);
        if (what == 0) {
            broken.write = fail_write;
        } else {
            broken.sync = fail_sync;
        }
        env->os->vt = &broken;
        assert_int_equal(what == 0 ? env_write(env, file, 0, "x", 1) : env_sync(env, file),
                         DB_IO_ERROR);
        assert_non_null(strstr(env->err.msg, what == 0 ? "No space" : "Input/output"));
        env->os->vt = real;
        assert_true(env->io_failed);
        assert_int_equal(env_write(env, file, 0, "x", 1), DB_IO_ERROR);
        assert_int_equal(env_sync(env, file), DB_IO_ERROR);
        assert_int_equal(env_truncate(env, file, 0), DB_IO_ERROR);
        assert_int_equal(env_rename(env, "f", "h"), DB_IO_ERROR);
        assert_int_equal(env_unlink(env, "g"), DB_IO_ERROR);
        assert_int_equal(env_sync_dir(env), DB_IO_ERROR);
        os_file_t *other;
        assert_int_equal(env_open(env, "n", OS_CREATE_NEW, &other), DB_IO_ERROR);
        assert_int_equal(env_open(env, "f", OS_CREATE_TRUNC, &other), DB_IO_ERROR);
        /* What was refused since has not replaced the cause. */
        assert_non_null(strstr(env->err.msg, what == 0 ? "No space" : "Input/output"));
        env_close(env, file);
        assert_content(env, "f", "data");
        assert_content(env, "g", "data");
        env->io_failed = false;
        env->err = (err_sink_t){.msg = ""};
    }
}

/* A data directory is made on request only, and something else in its place is refused. */
static void test_posix_create(void **state)
{
    err_sink_t err = {.msg = ""};
    (void)state;
    os_t *os;
    assert_int_equal(os_posix_create("test_os_none", false, &err, &os), DB_NOT_FOUND);
    assert_int_equal(os_posix_create("test_os_none/deep", true, &err, &os), DB_IO_ERROR);
    assert_int_equal(os_posix_create("test_os_new", true, &err, &os), DB_SUCCESS);
    os_destroy(os);
    assert_int_equal(os_posix_create("test_os_new", true, &err, &os), DB_SUCCESS);
    os_destroy(os);
    assert_int_equal(rmdir("test_os_new"), 0);
    assert_int_equal(os_posix_create("/dev/null", true, &err, &os), DB_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/dev/null"));
}

/* A directory, a FIFO or a device in the place of a file is an error, never a hang. */
static void test_posix_not_a_file(void **state)
{
    fixture_t *f = *state;
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/fifo", f->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(path, sizeof(path), "%s/dir", f->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    os_file_t *file;
    assert_int_equal(env_open(&f->env, "fifo", OS_OPEN, &file), DB_IO_ERROR);
    assert_int_equal(env_open(&f->env, "dir", OS_OPEN, &file), DB_IO_ERROR);
    assert_false(f->env.io_failed);
}

#define ON_BOTH(test)                                                                              \
    cmocka_unit_test_setup_teardown(test, setup_disk, teardown),                                   \
        cmocka_unit_test_setup_teardown(test, setup_posix, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_read_write),
        ON_BOTH(test_punch),
        ON_BOTH(test_open_modes),
        ON_BOTH(test_rename_unlink),
        ON_BOTH(test_list),
        ON_BOTH(test_paths),
        ON_BOTH(test_folder),
        ON_BOTH(test_lock),
        ON_BOTH(test_poison),
        cmocka_unit_test(test_posix_create),
        cmocka_unit_test_setup_teardown(test_posix_not_a_file, setup_posix, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
