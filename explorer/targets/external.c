/* The verdict on one state of an external target.

Place: beside judge.c, which does the same for the engine inside this process; above image.c and
outcome.c.

    image --files--> directory --verifier: open, check, digest--> report --outcome_judge--> outcome

Rules
1. The directory is empty between two states: nothing that one recovery left is seen by the next.
2. No state is allowed to be unrecoverable: a refusal is I30, in the target's own words.
3. A failure of the machine is never a verdict on the target, and a verifier whose answers cannot be
   told apart gives none. What only the recovery calls a failure of the machine, by its words or by
   a signal, is tried again: if that comes of the same image each time, and the machine is short of
   nothing, it is a refusal. If it comes but once, nobody knows what it was. */
#include "explorer/targets/external.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "explorer/targets/machine.h"

#define PARTS_MAX 256 /**< of a file that are written by one call */

typedef struct writer {
    const external_t *external;
    const image_t *image;
    err_sink_t *err;
    dberr_t status;
} writer_t;

static dberr_t file_error(const external_t *external, const char *path, err_sink_t *err)
{
    return err_set(err, DB_IO_ERROR, "%.200s/%.200s: %s", external->dir, path,
                   strerrordesc_np(errno));
}

/** Removes what is in the directory, which it closes. @return false and errno */
static bool clear_below(int dir_fd)
{
    DIR *dir = dir_fd >= 0 ? fdopendir(dir_fd) : NULL;
    const struct dirent *entry;
    bool ok = dir != NULL;
    while (ok && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
            continue;
        }
        ok = unlinkat(dirfd(dir), name, 0) == 0;
        if (!ok && errno == EISDIR) {
            int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
            ok = clear_below(openat(dirfd(dir), name, flags))
                 && unlinkat(dirfd(dir), name, AT_REMOVEDIR) == 0;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return ok;
}

static dberr_t clear_dir(const external_t *external, err_sink_t *err)
{
    int fd = openat(external->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return clear_below(fd) ? DB_SUCCESS : file_error(external, ".", err);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

/** Mounts of this process alone. Who may not have them has them in a user namespace, as the same
user. */
static bool leave_mounts(void)
{
    if (unshare(CLONE_NEWNS) == 0) {
        return true;
    }
    char uid_map[64];
    (void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", geteuid(), geteuid());
    char gid_map[64];
    (void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", getegid(), getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_text("/proc/self/setgroups", "deny")
           && write_text("/proc/self/uid_map", uid_map)
           && write_text("/proc/self/gid_map", gid_map);
}

/** Rule 4. */
static dberr_t place_at(external_t *external, const char *at, err_sink_t *err)
{
    if (!leave_mounts() || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0
        || mount(external->dir, at, NULL, MS_BIND, NULL) != 0) {
        return err_set(err, DB_IO_ERROR,
                       "the path of the run is in its files, and images cannot be recovered under "
                       "it: %.200s: %s",
                       at, strerrordesc_np(errno));
    }
    (void)snprintf(external->dir, sizeof(external->dir), "%s", at);
    return DB_SUCCESS;
}

dberr_t external_open(external_t *external, const external_config_t *config, const char *dir,
                      err_sink_t *err)
{
    *external = (external_t){.config = config, .dir_fd = -1};
    int len = snprintf(external->dir, sizeof(external->dir), "%s", dir);
    if (len < 0 || (size_t)len >= sizeof(external->dir)) {
        return err_set(err, DB_IO_ERROR, "%.200s: path too long", dir);
    }
    if (mkdir(dir, 0711) != 0 && errno != EEXIST) {
        return err_set(err, DB_IO_ERROR, "%s: %s", dir, strerrordesc_np(errno));
    }
    (void)snprintf(external->trace, sizeof(external->trace), "%s.trace", external->dir);
    external->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (external->dir_fd < 0) {
        return err_set(err, DB_IO_ERROR, "%s: %s", dir, strerrordesc_np(errno));
    }
    return config->at != NULL ? place_at(external, config->at, err) : DB_SUCCESS;
}

dberr_t external_close(external_t *external, err_sink_t *err)
{
    const verifier_t *verifier = external->config->verifier;
    dberr_t status = DB_SUCCESS;
    if (external->dir_fd >= 0) {
        if (verifier->stop != NULL) {
            status = verifier->stop(verifier->self, err);
        }
        close(external->dir_fd);
        external->dir_fd = -1;
        (void)unlink(external->trace);
        external_remove(external->dir);
    }
    return status;
}

void external_remove(const char *dir)
{
    if (clear_below(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC))) {
        (void)rmdir(dir);
    }
}

static bool write_all(int fd, struct iovec *parts, int n, off_t at)
{
    while (n > 0) {
        ssize_t written = pwritev(fd, parts, n, at);
        if (written <= 0) {
            return false;
        }
        at += written;
        for (; n > 0 && (size_t)written >= parts->iov_len; parts++, n--) {
            written -= (ssize_t)parts->iov_len;
        }
        if (n > 0) {
            parts->iov_base = (byte *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
    return true;
}

/** What of the file takes room; the rest stays a hole. */
static bool write_content(int fd, const image_t *image, uint32_t inode)
{
    struct iovec parts[PARTS_MAX];
    uint64_t at = 0;
    uint64_t len = 0;
    bool ok = ftruncate(fd, (off_t)image_size(image, inode)) == 0;
    const byte *bytes = image_data(image, inode, &at, &len);
    while (ok && bytes != NULL) {
        uint64_t from = at;
        uint64_t end = at;
        int n = 0;
        for (; bytes != NULL && at == end && n < PARTS_MAX; n++) {
            parts[n] = (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
            at = end = at + len;
            bytes = image_data(image, inode, &at, &len);
        }
        ok = write_all(fd, parts, n, (off_t)from);
    }
    return ok;
}

/** The folders above a file. */
static bool make_parents(int dir_fd, const char *path)
{
    char folder[PATH_LEN_MAX + 1];
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        if (mkdirat(dir_fd, folder, 0755) != 0 && errno != EEXIST) {
            return false;
        }
    }
    return true;
}

static void write_file(void *ctx, uint32_t name, uint32_t inode)
{
    writer_t *writer = ctx;
    int dir_fd = writer->external->dir_fd;
    const char *path = image_name_text(writer->image, name);
    if (writer->status != DB_SUCCESS) {
        return;
    }
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = make_parents(dir_fd, path) ? openat(dir_fd, path, flags, 0644) : -1;
    bool ok = fd >= 0 && write_content(fd, writer->image, inode);
    if (!ok) {
        writer->status = file_error(writer->external, path, writer->err);
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void make_dir(void *ctx, uint32_t dir)
{
    writer_t *writer = ctx;
    const char *path = image_name_text(writer->image, dir);
    int dir_fd = writer->external->dir_fd;
    bool ok = make_parents(dir_fd, path) && (mkdirat(dir_fd, path, 0755) == 0 || errno == EEXIST);
    if (writer->status == DB_SUCCESS && !ok) {
        writer->status = file_error(writer->external, path, writer->err);
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

static bool has_finding(const check_report_t *report, const check_finding_t *wanted)
{
    for (uint64_t i = 0; i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        const check_finding_t *finding = &report->findings[i];
        if (finding->invariant == wanted->invariant && strcmp(finding->path, wanted->path) == 0
            && strcmp(finding->what, wanted->what) == 0) {
            return true;
        }
    }
    return false;
}

/** Damage that the first recovery did not leave. */
static void add_new_findings(const check_report_t *first, const check_report_t *again,
                             verdict_t *verdict)
{
    for (uint64_t i = 0; i < again->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        const check_finding_t *finding = &again->findings[i];
        if (!has_finding(first, finding)) {
            verdict_add(verdict, SOURCE_SCAN, 17, "recovered twice: damage: %.60s: %.140s",
                        finding->path, finding->what);
        }
    }
}

/** I17. first: what the recovery before it has told. */
static dberr_t judge_again(const external_t *external, const check_report_t *first,
                           outcome_t *outcome, err_sink_t *err)
{
    const verifier_t *verifier = external->config->verifier;
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    dberr_t status = verifier->run(verifier->self, external->dir, &report, &sink);
    if (status == DB_UNRECOVERABLE) {
        verdict_add(&outcome->verdict, SOURCE_RECOVERY, 17, "recovered twice: refused: %.200s",
                    sink.msg);
        return DB_SUCCESS;
    }
    if (status != DB_SUCCESS) {
        return err_set(err, status, "%s", sink.msg);
    }
    outcome_compare(outcome, 17,
                    "recovered twice: ", allowed_digest(report.tables, report.n_tables));
    add_new_findings(first, &report, &outcome->verdict);
    check_report_free(&report);
    return DB_SUCCESS;
}

static dberr_t materialise(const external_t *external, const image_t *image, err_sink_t *err)
{
    writer_t writer = {.external = external, .image = image, .err = err};
    writer.status = clear_dir(external, err);
    if (writer.status == DB_SUCCESS) {
        image_each(image, write_file, &writer);
        image_each_dir(image, make_dir, &writer);
    }
    return writer.status;
}

/** What the recovery did, in the names and inodes of the image. */
static dberr_t read_record(const external_t *external, image_t *image, fs_list_t *record,
                           err_sink_t *err)
{
    trace_t trace;
    const trace_config_t config = {.ignored = external->config->ignored,
                                   .sites = external->config->sites};
    TRY(trace_load(external->trace, image, &config, &trace, err));
    for (uint32_t i = 0; i < trace.list.n; i++) {
        const fs_event_t *event = &trace.list.events[i];
        fs_event_t *copy = fs_list_add(record, event->kind);
        uint64_t seq = copy->seq;
        *copy = *event;
        copy->seq = seq;
        copy->issued_line = copy->acked_line = 0; /* a recovery issues no statement */
        copy->data = event->data != NULL ? fs_list_copy(record, event->data, event->length) : NULL;
    }
    trace_free(&trace);
    return DB_SUCCESS;
}

static dberr_t recover(const external_t *external, bool recorded, check_report_t *report,
                       err_sink_t *err)
{
    const verifier_t *verifier = external->config->verifier;
    return recorded ? verifier->record(verifier->self, external->dir, external->trace, report, err)
                    : verifier->run(verifier->self, external->dir, report, err);
}

/** Lays the image out, recovers it, judges. */
static dberr_t judge_once(const external_t *external, image_t *image, const external_case_t *c,
                          outcome_t *outcome, err_sink_t *err)
{
    verdict_t *verdict = &outcome->verdict;
    err_sink_t sink = {.msg = ""};
    TRY(materialise(external, image, err));
    if (c->record != NULL) {
        fs_list_clear(c->record);
    }
    check_report_t report;
    dberr_t status = recover(external, c->record != NULL, &report, &sink);
    if (status == DB_UNRECOVERABLE) {
        verdict_add(verdict, SOURCE_RECOVERY, 30, "refused: %.200s", sink.msg);
        return DB_SUCCESS;
    }
    if (status != DB_SUCCESS) {
        return err_set(err, status, "%s", sink.msg);
    }
    add_findings(&report, verdict);
    if (external->config->any_state) {
        outcome->digest = allowed_digest(report.tables, report.n_tables);
    } else {
        outcome_judge(outcome, c->expected, &report);
    }
    status = c->record != NULL ? read_record(external, image, c->record, err) : DB_SUCCESS;
    if (status == DB_SUCCESS && c->twice) {
        status = judge_again(external, &report, outcome, err);
    }
    check_report_free(&report);
    return status;
}

/** Rule 3. */
dberr_t external_judge(external_t *external, image_t *image, const external_case_t *c,
                       outcome_t *outcome, err_sink_t *err)
{
    const uint64_t oom_kills = machine_oom_kills();
    err_sink_t first = {.msg = ""};
    dberr_t status = judge_once(external, image, c, outcome, &first);
    if (status != DB_INTERRUPTED) {
        return status != DB_SUCCESS ? err_set(err, status, "%s", first.msg) : status;
    }
    for (uint32_t i = 1; i < EXTERNAL_ATTEMPTS && status == DB_INTERRUPTED; i++) {
        outcome_free(outcome);
        outcome_init(outcome);
        status = judge_once(external, image, c, outcome, NULL);
    }
    if (status != DB_INTERRUPTED || machine_is_short(oom_kills)) {
        return err_set(err, DB_IO_ERROR, "%s", first.msg);
    }
    verdict_add(&outcome->verdict, SOURCE_RECOVERY, 30,
                "%u times in a row, on a machine with memory and space to spare: %.160s",
                EXTERNAL_ATTEMPTS, first.msg);
    return DB_SUCCESS;
}
