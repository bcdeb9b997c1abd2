/* The verdict on one state of an external target.

Place: beside judge.c, which does the same for the engine inside this process; above image.c and allowed.c.

    image --files--> directory --verifier: open, check, digest--> report --allowed_judge--> verdict

Rules
1. The directory is empty between two states: nothing that one recovery left is seen by the next.
2. No state is allowed to be unrecoverable: a refusal is I30, in the target's own words.
3. A failure of the machine is never a verdict on the target. */
#include "explorer/targets/external.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct writer {
    const external_t *external;
    const image_t *image;
    err_sink_t *err;
    dberr_t status;
} writer_t;

/** Images are flat. */
static dberr_t clear_dir(const external_t *external, err_sink_t *err)
{
    DIR *dir = opendir(external->dir);
    if (dir == NULL) {
        return err_set(err, DB_IO_ERROR, "%s: %s", external->dir, strerrordesc_np(errno));
    }
    dberr_t status = DB_SUCCESS;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0
            && unlinkat(external->dir_fd, entry->d_name, 0) != 0) {
            status = err_set(err, DB_IO_ERROR, "%.200s/%.200s: %s", external->dir, entry->d_name,
                             strerrordesc_np(errno));
        }
    }
    closedir(dir);
    return status;
}

dberr_t external_open(external_t *external, const verifier_t *verifier, const char *dir,
                      err_sink_t *err)
{
    *external = (external_t){.verifier = verifier, .dir_fd = -1};
    int len = snprintf(external->dir, sizeof(external->dir), "%s", dir);
    if (len < 0 || (size_t)len >= sizeof(external->dir)) {
        return err_set(err, DB_IO_ERROR, "%.200s: path too long", dir);
    }
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_set(err, DB_IO_ERROR, "%s: %s", dir, strerrordesc_np(errno));
    }
    external->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (external->dir_fd < 0) {
        return err_set(err, DB_IO_ERROR, "%s: %s", dir, strerrordesc_np(errno));
    }
    return DB_SUCCESS;
}

void external_close(external_t *external)
{
    if (external->dir_fd >= 0) {
        err_sink_t ignored = {.msg = ""};
        dberr_t status = clear_dir(external, &ignored);
        close(external->dir_fd);
        external->dir_fd = -1;
        if (status == DB_SUCCESS) {
            rmdir(external->dir);
        }
    }
}

static bool write_all(int fd, const byte *bytes, uint64_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, bytes, len);
        if (written <= 0) {
            return false;
        }
        bytes += written;
        len -= (uint64_t)written;
    }
    return true;
}

static void write_file(void *ctx, uint32_t name, uint32_t inode)
{
    writer_t *writer = ctx;
    const char *path = image_name_text(writer->image, name);
    if (writer->status != DB_SUCCESS || !writer->external->verifier->is_image_file(path)) {
        return;
    }
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = openat(writer->external->dir_fd, path, flags, 0644);
    bool ok = fd >= 0
              && write_all(fd, image_bytes(writer->image, inode), image_size(writer->image, inode));
    if (!ok) {
        writer->status = err_set(writer->err, DB_IO_ERROR, "%.200s/%.200s: %s",
                                 writer->external->dir, path, strerrordesc_np(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void add_findings(const check_report_t *report, verdict_t *verdict)
{
    for (uint64_t i = 0; i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        const check_finding_t *finding = &report->findings[i];
        verdict_add(verdict, SOURCE_SCAN, finding->invariant, "%.60s: %.160s", finding->path,
                    finding->what);
    }
}

/** I17. */
static dberr_t judge_again(const external_t *external, const check_report_t *first,
                           verdict_t *verdict, err_sink_t *err)
{
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    dberr_t status = external->verifier->run(external->dir, &report, &sink);
    if (status == DB_UNRECOVERABLE) {
        verdict_add(verdict, SOURCE_RECOVERY, 17, "recovered twice: refused: %.200s", sink.msg);
        return DB_SUCCESS;
    }
    if (status != DB_SUCCESS) {
        return err_set(err, status, "%s", sink.msg);
    }
    if (allowed_digest(report.tables, report.n_tables)
        != allowed_digest(first->tables, first->n_tables)) {
        verdict_add(verdict, SOURCE_ORACLE, 17,
                    "recovered twice: another state than the first recovery");
    }
    check_report_free(&report);
    return DB_SUCCESS;
}

static dberr_t materialise(const external_t *external, const image_t *image, err_sink_t *err)
{
    writer_t writer = {.external = external, .image = image, .err = err};
    writer.status = clear_dir(external, err);
    if (writer.status == DB_SUCCESS) {
        image_each(image, write_file, &writer);
    }
    return writer.status;
}

dberr_t external_judge(external_t *external, const image_t *image, const allowed_t *allowed,
                       uint32_t low, uint32_t high, bool twice, verdict_t *verdict, err_sink_t *err)
{
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    dberr_t status = materialise(external, image, err);
    if (status != DB_SUCCESS) {
        return status;
    }
    status = external->verifier->run(external->dir, &report, &sink);
    if (status == DB_UNRECOVERABLE) {
        verdict_add(verdict, SOURCE_RECOVERY, 30, "refused: %.200s", sink.msg);
        return DB_SUCCESS;
    }
    if (status != DB_SUCCESS) {
        return err_set(err, status, "%s", sink.msg);
    }
    add_findings(&report, verdict);
    allowed_judge(allowed, &report, low, high, "", verdict);
    if (twice) {
        status = judge_again(external, &report, verdict, err);
    }
    check_report_free(&report);
    return status;
}
