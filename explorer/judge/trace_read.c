/* The trace reader.

Place: above flush.c and rules.c, which judge what is read as it is read. Trusts nothing in the
file: every length is checked against the bytes that are there.

Rules
1. Calls that failed changed nothing, and are left out; a write counts with the bytes that it
   transferred.
2. What the target declares as ignored is left out, as a lock file: its existence means nothing.
3. What the persistence model cannot follow (a fault, a shared mapping, a write
   without its data, a file that nobody told of) refuses the trace; it is never guessed. A live
   trace may have faults: it is only judged, by what the process was told that it did, and ends with
   its kill.
4. A crash point belongs to the markers around it: a line acknowledged before the next event must
   survive at this point too, since nothing was written in between; a line issued after this event
   cannot have. */
#include "explorer/judge/trace_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "disk/flush.h"
#include "disk/persist.h"

dberr_t reader_refuse(reader_t *reader, const char *why)
{
    return err_set(reader->err, DB_ERROR, "trace event %" PRIu64 ": %s", reader->rec.seq, why);
}

bool reader_path(const reader_t *reader, size_t offset, char out[PATH_ROOM])
{
    if (offset >= reader->payload_bytes) {
        return false;
    }
    size_t room = reader->payload_bytes - offset;
    size_t len = strnlen((const char *)reader->payload + offset, room);
    if (len == 0 || len >= PATH_ROOM) {
        return false;
    }
    memcpy(out, reader->payload + offset, len);
    out[len] = '\0';
    return true;
}

file_map_t *reader_file(reader_t *reader)
{
    uint32_t id = reader->rec.file;
    if (id >= (1U << 20)) {
        return NULL;
    }
    if (id >= reader->n_files) {
        uint32_t n = id * 2 + 16;
        reader->files = mem_grow(reader->files, n * sizeof(*reader->files));
        memset(reader->files + reader->n_files, 0, (n - reader->n_files) * sizeof(*reader->files));
        reader->n_files = n;
    }
    return &reader->files[id];
}

/** How many of the events before the one that was added last had not ended when it began. */
static uint32_t reader_late(const reader_t *reader)
{
    const fs_list_t *list = &reader->trace->list;
    uint32_t late = 0;
    while (late + 1 < list->n && list->events[list->n - 2 - late].seq > reader->rec.began) {
        late++;
    }
    return late;
}

fs_event_t *reader_event(reader_t *reader, fs_kind_t kind)
{
    fs_event_t *event = fs_list_add(&reader->trace->list, kind);
    event->seq = reader->rec.seq;
    event->inode = IMAGE_NONE;
    event->acked_line = reader->acked_line;
    event->issued_line = reader->issued_line;
    event->site = reader->site;
    event->late = reader_late(reader);
    return event;
}

uint32_t reader_name(reader_t *reader, const char *path)
{
    return image_name(reader->image, path, strlen(path));
}

bool reader_ignores(const reader_t *reader, const char *path)
{
    return path_set_has(reader->config->ignored, path);
}

/** A sync, a new size, or zeros: made to happen, and told to the rules. */
static void content_changed(reader_t *reader, const file_map_t *file, fs_kind_t kind,
                            uint64_t offset, uint64_t length)
{
    fs_event_t *event = reader_event(reader, kind);
    event->inode = file->inode;
    event->name = file->name;
    event->offset = offset;
    event->length = length;
    event->old_size = image_size(reader->image, event->inode);
    if (kind == FS_TRUNCATE) {
        rules_before(reader->rules, event->inode, image_name_text(reader->image, event->name), 0,
                     0);
    }
    persist_apply(reader->image, event);
    rules_event(reader->rules, event, image_name_text(reader->image, event->name));
}

static dberr_t file_opened(reader_t *reader, const char *path)
{
    file_map_t *file = reader_file(reader);
    if (file == NULL) {
        return reader_refuse(reader, "damaged");
    }
    if ((reader->rec.flags & TP_OPEN_DIRECTORY) != 0 || reader_ignores(reader, path)) {
        *file = (file_map_t){.inode = IMAGE_NONE, .name = reader_name(reader, path), .known = true};
        return DB_SUCCESS;
    }
    if (!file->known) {
        uint32_t name = reader_name(reader, path);
        uint32_t inode = image_lookup(reader->image, name);
        *file = (file_map_t){.inode = inode, .name = name, .known = inode != IMAGE_NONE};
    }
    if ((reader->rec.flags & TP_OPEN_CREATED) != 0) {
        uint32_t inode = image_inode_create(reader->image);
        *file = (file_map_t){.inode = inode, .name = reader_name(reader, path), .known = true};
        if ((reader->rec.offset & O_TMPFILE) == O_TMPFILE) {
            return DB_SUCCESS; /* no name leads to it before a link */
        }
        fs_event_t *event = reader_event(reader, FS_LINK);
        event->inode = inode;
        event->name = file->name;
        image_link(reader->image, file->name, inode);
        rules_event(reader->rules, event, path);
        return DB_SUCCESS;
    }
    if (!file->known) {
        return reader_refuse(reader,
                             "a file that was there before the recording, and is not in --base");
    }
    if ((reader->rec.offset & O_TRUNC) != 0) {
        content_changed(reader, file, FS_TRUNCATE, 0, 0);
    }
    return DB_SUCCESS;
}

static dberr_t on_open(reader_t *reader)
{
    char path[PATH_ROOM];
    if (!reader_path(reader, 0, path)) {
        return reader_refuse(reader, "damaged");
    }
    TRY(file_opened(reader, path));
    rules_opened(reader->rules, path);
    return DB_SUCCESS;
}

/** Of the operations on an open file. *out = NULL: not one that matters. */
static dberr_t known_file(reader_t *reader, file_map_t **out)
{
    file_map_t *file = reader_file(reader);
    if (file == NULL || !file->known) {
        return reader_refuse(reader, "an operation on an unknown file");
    }
    *out = file->inode == IMAGE_NONE ? NULL : file;
    return DB_SUCCESS;
}

static dberr_t on_write(reader_t *reader)
{
    file_map_t *file = NULL;
    dberr_t err = known_file(reader, &file);
    if (err != DB_SUCCESS || file == NULL || reader->rec.result == 0) {
        return err;
    }
    uint64_t length = (uint64_t)reader->rec.result;
    if ((reader->rec.flags & TP_WRITE_PAYLOAD) == 0) {
        return reader_refuse(reader, "a write without its data; record with TORNPAGE_PAYLOAD=full");
    }
    if (length > reader->payload_bytes || reader->rec.offset > IMAGE_FILE_MAX
        || length > IMAGE_FILE_MAX - reader->rec.offset) {
        return reader_refuse(reader, "damaged");
    }
    const char *path = image_name_text(reader->image, file->name);
    fs_event_t *event = reader_event(reader, FS_WRITE);
    event->inode = file->inode;
    event->name = file->name;
    event->offset = reader->rec.offset;
    event->length = length;
    event->data = reader->payload;
    event->durable = (reader->rec.flags & TP_WRITE_DURABLE) != 0;
    event->old_size = image_size(reader->image, event->inode);
    bool empty = flush_place_is_empty(reader->image, event);
    rules_before(reader->rules, event->inode, path, event->offset, length);
    persist_apply(reader->image, event);
    rules_event(reader->rules, event, path);
    if (!write_sites_find(reader->config->write_sites, reader->rec.seq, &event->site)
        && reader->config->sites != NULL) {
        event->site = site_map_find(reader->config->sites, path, event->offset);
    }
    event->first_flush |= empty;
    reader->site = event->site;
    return DB_SUCCESS;
}

static dberr_t on_content(reader_t *reader, fs_kind_t kind)
{
    file_map_t *file = NULL;
    dberr_t err = known_file(reader, &file);
    if (err == DB_SUCCESS && file != NULL) {
        if (kind == FS_TRUNCATE && reader->rec.offset > IMAGE_FILE_MAX) {
            return reader_refuse(reader, "a file too large for a memory image");
        }
        content_changed(reader, file, kind, kind == FS_SYNC ? 0 : reader->rec.offset,
                        kind == FS_ZERO ? reader->rec.length : 0);
    }
    return err;
}

#define ZEROING (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)
#define FOLLOWED (ZEROING | FALLOC_FL_KEEP_SIZE | FALLOC_FL_UNSHARE_RANGE)

/** Space that is reserved is not seen; a file that grows is a new size, a hole or a zeroed range
are zeros. */
static dberr_t on_fallocate(reader_t *reader)
{
    file_map_t *file = NULL;
    dberr_t err = known_file(reader, &file);
    if (err != DB_SUCCESS || file == NULL) {
        return err;
    }
    if ((reader->rec.flags & ~FOLLOWED) != 0) {
        return reader_refuse(reader, "a fallocate that moves what is behind it is not modelled");
    }
    uint64_t offset = reader->rec.offset;
    uint64_t length = reader->rec.length;
    if (offset > INT64_MAX || length > INT64_MAX) {
        return reader_refuse(reader, "damaged");
    }
    if ((reader->rec.flags & FALLOC_FL_KEEP_SIZE) == 0
        && offset + length > image_size(reader->image, file->inode)) {
        reader->rec.offset = offset + length;
        err = on_content(reader, FS_TRUNCATE);
        reader->rec.offset = offset;
    }
    TRY(err);
    return (reader->rec.flags & ZEROING) != 0 ? on_content(reader, FS_ZERO) : DB_SUCCESS;
}

/** The journal of statements; the number behind it is the line. Of several clients, whose numbers
come in no order, it is how many there were. False: the text is something else. */
static bool on_journal(reader_t *reader, const char *text)
{
    static const char *const VERBS[] = {[JOURNAL_ISSUE] = "issue n=", [JOURNAL_ACK] = "ack n="};
    fs_list_t *list = &reader->trace->list;
    for (journal_kind_t kind = JOURNAL_ISSUE; kind <= JOURNAL_ACK; kind++) {
        size_t len = strlen(VERBS[kind]);
        if (strncmp(text, VERBS[kind], len) != 0) {
            continue;
        }
        uint32_t line = (uint32_t)strtoul(text + len, NULL, 10);
        uint32_t *last = kind == JOURNAL_ISSUE ? &reader->issued_line : &reader->acked_line;
        *last = line = strstr(text, " client=") == NULL ? line : *last + 1;
        rules_journal(reader->rules, kind, line);
        if (kind == JOURNAL_ACK) {
            *(list->n == 0 ? &reader->trace->first_acked_line
                           : &list->events[list->n - 1].acked_line) = line;
        }
        return true;
    }
    return false;
}

static dberr_t on_mark(reader_t *reader)
{
    size_t len = (size_t)reader->rec.length;
    if (reader->rec.length > reader->payload_bytes) {
        return reader_refuse(reader, "damaged");
    }
    char text[300];
    len = len < sizeof(text) ? len : sizeof(text) - 1;
    memcpy(text, reader->payload, len);
    text[len] = '\0';
    if (strncmp(text, "refused ", 8) == 0) {
        return reader_refuse(reader, text);
    }
    if (!on_journal(reader, text) && !reader->config->live && strncmp(text, "unseen ", 7) == 0) {
        const char *path = strstr(text, " path=");
        return path != NULL && reader_ignores(reader, path + 6) ? DB_SUCCESS
                                                                : reader_refuse(reader, text);
    }
    return DB_SUCCESS;
}

/** What changes nothing, and is told to the rules alone. */
static void on_other(reader_t *reader)
{
    const tp_trace_record_t *rec = &reader->rec;
    char failed[PATH_ROOM];
    bool names = rec->kind == TP_OP_RENAME || rec->kind == TP_OP_SYNC_DIR;
    if (rec->result < 0 && names && reader_path(reader, 0, failed)) {
        if (rec->kind == TP_OP_RENAME || strcmp(failed, ".") == 0) {
            rules_failed(reader->rules, failed);
        }
        return;
    }
    const file_map_t *file = reader_file(reader);
    if (file == NULL || !file->known || file->inode == IMAGE_NONE) {
        return;
    }
    const char *path = image_name_text(reader->image, file->name);
    bool changes = rec->kind == TP_OP_WRITE || rec->kind == TP_OP_TRUNCATE
                   || rec->kind == TP_OP_FSYNC || rec->kind == TP_OP_FDATASYNC;
    if (rec->kind == TP_OP_READ) {
        rules_read(reader->rules, file->inode, path, rec->offset, rec->length);
    } else if (rec->kind == TP_OP_CLOSE && rec->length == 0) {
        rules_closed(reader->rules, path);
    } else if (rec->result < 0 && changes) {
        rules_failed(reader->rules, path);
    }
}

static dberr_t on_record(reader_t *reader)
{
    bool fault = reader->rec.kind == TP_OP_KILL || reader->rec.kind == TP_OP_FAULT;
    if (fault && !reader->config->live) {
        return reader_refuse(reader, "a fault was injected; record a fault-free run");
    }
    if (fault || reader->rec.result < 0) {
        reader->killed |= reader->rec.kind == TP_OP_KILL;
        on_other(reader);
        return DB_SUCCESS;
    }
    switch (reader->rec.kind) {
    case TP_OP_OPEN:
        return on_open(reader);
    case TP_OP_WRITE:
        return on_write(reader);
    case TP_OP_FSYNC:
    case TP_OP_FDATASYNC:
        return on_content(reader, FS_SYNC);
    case TP_OP_TRUNCATE:
        return on_content(reader, FS_TRUNCATE);
    case TP_OP_FALLOCATE:
        return on_fallocate(reader);
    case TP_OP_RENAME:
        return reader_on_rename(reader);
    case TP_OP_UNLINK:
        return reader_on_unlink(reader);
    case TP_OP_MKDIR:
        return reader_on_mkdir(reader);
    case TP_OP_SYNC_DIR:
        return reader_on_sync_dir(reader);
    case TP_OP_LINK:
        return reader_on_link(reader);
    case TP_OP_SYNC_ALL:
        return reader_on_sync_all(reader);
    case TP_OP_MARK:
        return on_mark(reader);
    default:
        on_other(reader);
        return DB_SUCCESS; /* SYNC_RANGE promises nothing about metadata */
    }
}

static dberr_t read_records(reader_t *reader, const uint8_t *bytes, uint64_t committed)
{
    uint64_t at = TP_TRACE_HEADER_SIZE;
    while (at < committed && !reader->killed) {
        if (committed - at < TP_TRACE_RECORD_SIZE) {
            return err_set(reader->err, DB_ERROR, "trace: cut record at byte %" PRIu64, at);
        }
        memcpy(&reader->rec, bytes + at, TP_TRACE_RECORD_SIZE);
        if (reader->rec.total < TP_TRACE_RECORD_SIZE || reader->rec.total > committed - at
            || reader->rec.total % TP_TRACE_ALIGN != 0) {
            return err_set(reader->err, DB_ERROR, "trace: impossible record at byte %" PRIu64, at);
        }
        reader->payload = bytes + at + TP_TRACE_RECORD_SIZE;
        reader->payload_bytes = reader->rec.total - TP_TRACE_RECORD_SIZE;
        reader->trace->seq = reader->rec.seq;
        uint32_t total = reader->rec.total;
        const trace_config_t *config = reader->config;
        if (config->before == NULL || config->before(config->ctx, reader)) {
            TRY(on_record(reader));
        }
        at += total;
    }
    return DB_SUCCESS;
}

static dberr_t map_file(const char *path, trace_t *trace, err_sink_t *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set(err, DB_ERROR, "%s: %s", path, strerrordesc_np(errno));
    }
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size < (off_t)TP_TRACE_HEADER_SIZE) {
        (void)close(fd);
        return err_set(err, DB_ERROR, "%s: not a trace: too short", path);
    }
    trace->map_bytes = (size_t)st.st_size;
    trace->map = mmap(NULL, trace->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (trace->map == MAP_FAILED) {
        trace->map = NULL;
        return err_set(err, DB_ERROR, "%s: %s", path, strerrordesc_np(errno));
    }
    return DB_SUCCESS;
}

/** The content that was played, and the names, go; the inodes stay, empty. */
static void unplay(image_t *image, const fs_list_t *list)
{
    uint32_t n_inodes = image_inode_count(image);
    image_undo(image);
    while (image_inode_count(image) < n_inodes) {
        (void)image_inode_create(image);
    }
    image_set_hashing(image, true);
    reader_set_dirs(image, list);
}

dberr_t trace_load(const char *path, image_t *image, const trace_config_t *config, trace_t *trace,
                   err_sink_t *err)
{
    CHECK(!config->live || image_marks(image) == 0);
    *trace = (trace_t){.map = NULL};
    TRY(map_file(path, trace, err));
    const uint8_t *bytes = trace->map;
    uint64_t committed;
    memcpy(&committed, bytes + 8, sizeof(committed));
    uint32_t flags;
    memcpy(&flags, bytes + 16, sizeof(flags));
    trace->rules = rules_create(&config->rules);
    reader_t reader = {
        .image = image, .trace = trace, .err = err, .config = config, .rules = trace->rules};
    rules_start(trace->rules, image, config->live, NULL);
    image_set_hashing(image, false);
    if (!config->live) {
        image_mark(image);
    }
    dberr_t e = DB_SUCCESS;
    if (memcmp(bytes, TP_TRACE_MAGIC, 8) != 0 || committed > trace->map_bytes
        || committed < TP_TRACE_HEADER_SIZE) {
        e = err_set(err, DB_ERROR, "%s: not a trace", path);
    } else if ((flags & TP_TRACE_OVERFLOW) != 0) {
        e = err_set(err, DB_ERROR, "%s: the recording ran out of space (TORNPAGE_TRACE_MAX)", path);
    } else {
        e = read_records(&reader, bytes, committed);
    }
    free(reader.files);
    if (!config->live) {
        unplay(image, &trace->list);
    }
    if (e != DB_SUCCESS) {
        trace_free(trace);
    }
    return e;
}

void trace_free(trace_t *trace)
{
    fs_list_free(&trace->list);
    if (trace->rules != NULL) {
        rules_destroy(trace->rules);
    }
    if (trace->map != NULL) {
        (void)munmap(trace->map, trace->map_bytes);
    }
    *trace = (trace_t){.map = NULL};
}
