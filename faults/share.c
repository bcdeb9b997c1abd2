/** What the processes of one recording share.

Above nothing but libc; below files.c, inject.c and layer.c.
1. The locks are robust: a process that is killed while it holds one leaves it to the next, which
   learns of it.
2. The table of files only grows: an inode that is forgotten keeps its place, for the next file with
   its number. */
#include "faults/share.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u

/* Pages are there before they are written: a full file system is an error here, and no SIGBUS.
EINVAL: a kernel before 5.14 does not know of it. */
static bool share_populate(void *from, size_t bytes)
{
    uintptr_t page = (uintptr_t)from & ~(uintptr_t)(PAGE_BYTES - 1);

    return madvise((void *)page, (uintptr_t)from + bytes - page, MADV_POPULATE_WRITE) == 0
           || errno == EINVAL;
}

bool share_init(share_t *share)
{
    pthread_mutexattr_t attr;
    bool done = share_populate(share, offsetof(share_t, files))
                && pthread_mutexattr_init(&attr) == 0
                && pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0
                && pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0
                && pthread_mutex_init(&share->lock, &attr) == 0
                && pthread_mutex_init(&share->control, &attr) == 0;

    return done; /* glibc's attributes hold nothing that could be destroyed */
}

share_t *share_create(void)
{
    share_t *share =
        mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return share == MAP_FAILED || !share_init(share) ? NULL : share;
}

share_locked_t share_lock(share_t *share)
{
    if (pthread_mutex_lock(&share->lock) != EOWNERDEAD) {
        return SHARE_LOCKED;
    }
    (void)pthread_mutex_consistent(&share->lock);
    return share->ended ? SHARE_ENDED : SHARE_OWNER_DIED;
}

void share_unlock(share_t *share)
{
    (void)pthread_mutex_unlock(&share->lock);
}

static uint32_t *chain_of(share_t *share, dev_t device, ino_t inode)
{
    return &share->chains[(inode ^ (device << 7)) % SHARE_CHAINS];
}

static share_file_t *file_of(share_t *share, dev_t device, ino_t inode)
{
    uint32_t number = *chain_of(share, device, inode);

    while (number != 0) {
        share_file_t *file = &share->files[number - 1];
        if (file->inode == inode && file->device == device) {
            return file;
        }
        number = file->next;
    }
    return NULL;
}

uint32_t share_file_find(share_t *share, const struct stat *st)
{
    const share_file_t *file = file_of(share, st->st_dev, st->st_ino);

    return file == NULL ? 0 : file->id;
}

static share_file_t *file_append(share_t *share, dev_t device, ino_t inode)
{
    uint32_t *chain = chain_of(share, device, inode);
    share_file_t *file = &share->files[share->n_files];

    if (share->n_files == SHARE_FILES || !share_populate(file, sizeof(*file))) {
        return NULL;
    }
    *file = (share_file_t){.device = device, .inode = inode, .next = *chain};
    *chain = ++share->n_files;
    return file;
}

uint32_t share_file_add(share_t *share, const struct stat *st)
{
    share_file_t *file = file_of(share, st->st_dev, st->st_ino);

    if (file == NULL) {
        file = file_append(share, st->st_dev, st->st_ino);
    }
    if (file == NULL) {
        return 0;
    }
    file->id = ++share->last_file;
    return file->id;
}

void share_file_forget(share_t *share, dev_t device, ino_t inode)
{
    share_file_t *file = file_of(share, device, inode);

    if (file != NULL) {
        file->id = 0;
    }
}
